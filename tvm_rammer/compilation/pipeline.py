"""The passes of `relax.get_pipeline("rammer")`: prepare, schedule, finish. Each can be used by itself."""

import tvm

from .. import relay_passes
from ..errors import TargetError
from ..relay_passes.module_pass import module_pass
from ..runtime.pool import use_workers
from .launch import schedule_regions
from .record import Compilation
from .target import resolve_device


def rammer_pipeline(policy: str = "auto", sync: str = "auto") -> tvm.transform.Pass:
    """What `relax.get_pipeline("rammer")` returns, for the current target.

    The thread that compiles gets a thread pool with a worker for each core.

    Parameters
    ----------
    policy, sync : str
        As in `tvm_rammer.compile`.

    Notes
    -----
    Every Relax function of the module takes part, whatever its name. What has symbolic shapes stays stock TVM's.

    For a GPU pass `tir_pipeline="rammer_cuda"` to `tvm.compile` too: it makes the launches cooperative, so that
    a grid which does not fit fails to start instead of waiting for ever.
    """

    @module_pass("Rammer")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        target = _current_target("the pipeline 'rammer'")
        use_workers()
        mod = relay_passes.prepare(target)(mod.clone())
        return relay_passes.finish(target)(ScheduleRegions(policy, sync)(mod))

    return run


def ScheduleRegions(policy: str = "auto", sync: str = "auto") -> tvm.transform.Pass:
    """Make the pass that replaces the regions of a prepared module by rPrograms, for the current target.

    Parameters
    ----------
    policy, sync : str
        As in `tvm_rammer.compile`.
    """

    @module_pass("ScheduleRegions")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        target = _current_target("the pass ScheduleRegions")
        return schedule_regions(mod, Compilation(resolve_device(target), policy, sync))

    return run


def _current_target(who: str) -> tvm.target.Target:
    target = tvm.target.Target.current()
    if target is None:
        raise TargetError(f"{who} runs without a target; give it one, as in `with target: mod = ...(mod)`")
    return target
