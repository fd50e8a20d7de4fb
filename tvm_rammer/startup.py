"""What happens at `import tvm_rammer`, without importing TVM, which takes more than a second."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from .errors import RammerError, all_subclasses

_PIPELINES = "tvm.relax.pipeline"


def register_pipeline_with_tvm() -> None:
    """Register the Relax pipeline "rammer": now if Relax is imported, else as soon as it is."""
    if _PIPELINES in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _RelaxImportHook())


def _register() -> None:
    """Register the pipeline, and our errors, so that they come out of TVM's passes as what they are."""
    import tvm_ffi

    errors: list[type[RammerError]] = [RammerError, *all_subclasses(RammerError)]
    for error in errors:
        tvm_ffi.register_error(f"tvm_rammer.{error.__name__}", error)
    # Ctrl-C within a callback of TVM's would come out as a RuntimeError, and count as a failure.
    tvm_ffi.register_error("KeyboardInterrupt", KeyboardInterrupt)
    pipelines = sys.modules[_PIPELINES]

    @pipelines.register_pipeline("rammer")  # type: ignore[untyped-decorator, unused-ignore]
    def rammer(policy: str = "auto", sync: str = "auto") -> object:
        """Prepare, schedule, finish: for `tvm.compile(mod, target, relax_pipeline="rammer")`."""
        from .compilation.pipeline import rammer_pipeline

        return rammer_pipeline(policy, sync)


class _RelaxImportHook(importlib.abc.MetaPathFinder):
    """Finds `tvm.relax.pipeline` as usual, and registers our pipeline once its code has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _PIPELINES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            _register()

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
