"""What TVM does after fusion and scheduling: the rest of its default pipeline."""

import importlib
from types import ModuleType

import tvm
from tvm import relax

_HOMES = {"llvm": "cpu_generic", "cuda": "cuda"}


def backend(target: tvm.target.Target) -> ModuleType:
    """TVM's own module of pipeline stages for a target."""
    return importlib.import_module(f"tvm.relax.backend.{_HOMES.get(target.kind.name, 'gpu_generic')}.pipeline")


def finish(target: tvm.target.Target) -> tvm.transform.Pass:
    """Lower a prepared module to what the Relax virtual machine runs.

    The stages are those of TVM's own pipeline for the target but without the fusion and the schedules, so what
    `prepare` fused and the caller scheduled stays as it is. An operator that nobody legalized is legalized.

    Parameters
    ----------
    target : tvm.target.Target

    Returns
    -------
    tvm.transform.Pass
    """
    home = backend(target)

    @tvm.transform.module_pass(opt_level=0, name="RammerFinish")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        stages = [
            *home.library_dispatch_passes(target),
            relax.transform.LegalizeOps(),
            # It looks for reshapes among the PrimFuncs and fails on one that is not written in blocks. Ours need
            # not be, and a reshape is an rOperator like any other.
            *(p for p in home.dataflow_lower_passes(target) if p.info.name != "RewriteDataflowReshape"),
            *home.finalize_passes(target),
        ]
        with target:
            return tvm.transform.Sequential(stages)(mod)

    return run
