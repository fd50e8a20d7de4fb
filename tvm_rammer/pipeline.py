"""The passes of `relax.get_pipeline("rammer")`: prepare, schedule, finish. Each can be used by itself."""

from typing import Any

import tvm
from tvm import tirx

from . import relay_passes
from .compilation import Compilation
from .device import DeviceSpec, from_target_config, preset
from .errors import TargetError
from .regions import schedule_regions


def resolve_device(target: Any) -> DeviceSpec:
    """Turn what the user calls a target into a device.

    Raises
    ------
    TargetError
        It is no target, or one without a vDevice.
    """
    if isinstance(target, DeviceSpec):
        return target
    if isinstance(target, str):
        return preset(target)
    if isinstance(target, tvm.target.Target):
        return from_target_config(target.export())
    raise TargetError(f"{type(target).__name__} is no target; give a preset's name, a tvm Target or a DeviceSpec")


def rammer_pipeline(policy: str = "auto", sync: str = "auto") -> tvm.transform.Pass:
    """What `relax.get_pipeline("rammer")` returns, for the current target.

    Parameters
    ----------
    policy, sync : str
        As in `tvm_rammer.compile`.

    Notes
    -----
    For a GPU pass `tir_pipeline="rammer_cuda"` to `tvm.compile` too: it makes the launches cooperative, so that
    a grid which does not fit fails to start instead of waiting for ever.
    """

    @tvm.transform.module_pass(opt_level=0, name="Rammer")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        target = _current_target("the pipeline 'rammer'")
        mod = relay_passes.prepare(target)(relay_passes.load_model(mod))
        return finish(target)(ScheduleRegions(policy, sync)(mod))

    return run


def ScheduleRegions(policy: str = "auto", sync: str = "auto") -> tvm.transform.Pass:
    """Make the pass that replaces the regions of a prepared module by rPrograms, for the current target.

    Parameters
    ----------
    policy, sync : str
        As in `tvm_rammer.compile`.
    """

    @tvm.transform.module_pass(opt_level=0, name="ScheduleRegions")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        target = _current_target("the pass ScheduleRegions")
        return schedule_regions(mod, Compilation(resolve_device(target), policy, sync))

    return run


def _current_target(who: str) -> tvm.target.Target:
    target = tvm.target.Target.current()
    if target is None:
        raise TargetError(f"{who} needs a target: `with target: mod = ...(mod)`")
    return target


def finish(target: tvm.target.Target) -> tvm.transform.Pass:
    """The rest of TVM's pipeline; rTask functions stay private, or they would get an interface of their own."""
    stages = [relay_passes.finish(target), KeepRTasksPrivate()]
    if target.kind.name == "cuda":
        # What was left to stock TVM needs a schedule on a GPU: stock TVM's own.
        stages.insert(0, _stock_schedules(target))
    return tvm.transform.Sequential(stages)


def _stock_schedules(target: tvm.target.Target) -> tvm.transform.Pass:
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())

    @tvm.transform.module_pass(opt_level=0, name="StockSchedules")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        with target:
            return dlight.ApplyDefaultSchedule(*rules)(mod.clone())

    return run


@tvm.transform.module_pass(opt_level=0, name="KeepRTasksPrivate")
def _keep_rtasks_private(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    mod = mod.clone()
    for gv, func in mod.functions.items():
        if isinstance(func, tirx.PrimFunc) and "rammer.rtask" in func.attrs:
            mod.update_func(gv, func.without_attr("global_symbol"))
    return mod


def KeepRTasksPrivate() -> tvm.transform.Pass:
    """Take the global symbol from rTask functions: TVM gives one to every function it finds."""
    return _keep_rtasks_private
