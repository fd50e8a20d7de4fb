"""A saved model as a module that can be called: neither compiled, nor is TVM's compiler imported for it."""

import os
import pathlib
import threading
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..arguments import path_of, whole
from ..device import DeviceSpec
from ..errors import SavedModelError, first_line
from ..runtime.explore import Exploration
from ..runtime.length import LengthModule
from ..runtime.module import CONCURRENCY, RammerModule
from ..runtime.tvm_runtime import provide, start_runtime
from .file import RECORD, SOURCE, Facts, read_facts, read_part

if TYPE_CHECKING:
    from tvm import relax

    from ..compilation.record import Compilation


def load(path: str | os.PathLike[str], *, concurrency: int = CONCURRENCY) -> RammerModule:
    """Load a model that `RammerModule.save` or `tvm-rammer compile -o FILE.rammer` wrote.

    A saved model is code: load only what you trust.

    Parameters
    ----------
    path : path
    concurrency : int
        As in `tvm_rammer.compile`.

    Returns
    -------
    RammerModule
        It can all that a module just compiled can: `explain` and the pictures come from the file.

    Raises
    ------
    SavedModelError
        There is no such file; it is no saved model, or damaged; or it was saved for another processor or by another
        version of this package or of TVM.
    """
    file = path_of(path, SavedModelError)
    whole("concurrency", concurrency, 1)
    facts = read_facts(file)
    plan = SavedPlan(file, facts)
    if facts.device.kind == "cpu":
        _ = plan.module  # now: what cannot be opened is no saved model
    exploration = Exploration([plan], 0)
    if facts.length is not None:
        return LengthModule(exploration, facts.inputs, facts.outputs, facts.length, concurrency)
    return RammerModule(exploration, facts.inputs, facts.outputs, concurrency)


class SavedPlan:
    """A way to run a model that was read from a file (`runtime.explore.Plan`).

    Parameters
    ----------
    file : pathlib.Path
    facts : Facts
    """

    def __init__(self, file: pathlib.Path, facts: Facts) -> None:
        self.label = ""
        self.times_us: list[float] = []
        # The file stays at hand when it is replaced or removed.
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, descriptor)
        self._path = pathlib.Path(f"/proc/self/fd/{descriptor}")
        self._name = _spelled(pathlib.Path(os.path.realpath(file)))
        self.device: DeviceSpec = facts.device
        self.stock_calls = facts.stock_calls
        self._functions = facts.functions
        self.grows = facts.grows
        if facts.stock_calls or facts.device.kind != "cpu":
            import tvm  # noqa: F401  # stock calls may need any of its libraries

    @cached_property
    def module(self) -> Any:
        """What a virtual machine loads. What was compiled for a GPU can be read, but not opened, without one."""
        library = _open_library(self._name)
        provide(self._functions)
        return library

    @property
    def file(self) -> pathlib.Path | None:
        """The file that it was read from."""
        return self._path

    @property
    def median_us(self) -> float:
        """Median time of a call: unknown, since a file holds one plan and nothing is compared."""
        return float("inf")

    @cached_property
    def compilation(self) -> "Compilation":
        """What was decided when the model was compiled."""
        from .record import from_bytes

        return from_bytes(read_part(self._path, RECORD))

    @cached_property
    def executable(self) -> "relax.VMExecutable":
        """TVM's executable: of the same library, with constants of its own."""
        from tvm import relax

        return relax.VMExecutable(_open_library(self._name))

    def cuda_source(self) -> str:
        """The generated CUDA text; empty on a CPU."""
        return read_part(self._path, SOURCE).decode() if self.device.kind == "cuda" else ""


_LOCK = threading.Lock()
_opened: dict[str, list[tuple[int, int]]] = {}
"""For each path that a library was loaded from, the files that were there then: device and inode."""


def _open_library(name: str) -> Any:
    start_runtime()
    import tvm_ffi

    try:
        return tvm_ffi.get_global_func("ffi.Module.load_from_file.so")(name, "so")
    except UnicodeEncodeError as error:
        raise SavedModelError(
            f"TVM opens files by names in UTF-8 only, and {name!r} is none; rename it, or the folders around it"
        ) from error
    except (OSError, RuntimeError) as error:
        raise SavedModelError(
            f"the library in {name!r} cannot be loaded: {first_line(error)}; save the model again, to a "
            "file system from which programs may be run"
        ) from error


def _spelled(path: pathlib.Path) -> str:
    """The path, written in another way for each file that has stood there.

    The system's loader knows libraries by the names that they were loaded by: after a file was replaced, its old name
    would give the old library.
    """
    found = path.stat()
    with _LOCK:
        known = _opened.setdefault(os.fspath(path), [])
        if (found.st_dev, found.st_ino) not in known:
            known.append((found.st_dev, found.st_ino))
        return f"{path.parent}/{'./' * known.index((found.st_dev, found.st_ino))}{path.name}"
