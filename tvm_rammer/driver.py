"""The whole compiler on one page: stage after stage."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import tvm

from . import persistent_codegen as codegen
from . import relay_passes
from .compilation import Compilation
from .explore import Alternative, Exploration, plan_alternatives
from .module import RammerModule, TensorSpec
from .pipeline import finish, resolve_device
from .regions import find_regions, launch_regions, plan_regions


def compile(
    model: Any,
    *,
    target: Any = "cpu",
    shapes: Mapping[str, Sequence[int]] | None = None,
    policy: str = "wavefront",
    sync: str = "auto",
    tuning_logs: str | os.PathLike[str] | None = None,
    explore: int = 0,
) -> RammerModule:
    """Compile a model to persistent rPrograms inside a Relax VM executable.

    Parameters
    ----------
    model : path, onnx.ModelProto, tvm.IRModule or torch.export.ExportedProgram
    target : str, tvm.target.Target or DeviceSpec
        "cpu", "cuda:h200", "cuda:h100", "cuda:a100", "cuda:v100", or a device of your own.
    shapes : mapping of str to sequence of int, optional
        Static shapes of the inputs whose shapes the model leaves open.
    policy : str
        A scheduling policy (`tvm_rammer.wavefront.POLICIES`).
    sync : {"auto", "global"}
        Waits only where there are dependences, or a barrier between waves.
    tuning_logs : path, optional
        What `tvm-rammer tune` wrote, or a MetaSchedule database: its records compete as rKernels.
    explore : int
        The first so many calls take turns on plans that the cost model cannot tell apart; then the fastest stays
        (Astra, ASPLOS 2019). Each plan is compiled, so compiling takes up to six times as long.

    Returns
    -------
    RammerModule

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    device = resolve_device(target)
    tvm_target = tvm.target.Target(device.target_config())
    record = Compilation(device, policy, sync)
    mod = relay_passes.load_model(model, shapes)
    inputs = [_tensor_spec(p) for p in mod["main"].params]
    record.operators = _count_calls(mod)
    regions = find_regions(relay_passes.prepare(tvm_target)(mod), record, tuning_logs)
    plan_regions(regions, record)
    plans = plan_alternatives(regions, record) if explore else [("", record)]
    made = [
        Alternative(label, plan, build(finish(tvm_target)(launch_regions(regions, plan)), tvm_target))
        for label, plan in plans
    ]
    return RammerModule(Exploration(made, explore), inputs)


def build(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.relax.VMExecutable:
    """Generate code for a module that `finish` has lowered."""
    pipeline = codegen.CUDA_PIPELINE if target.kind.name == "cuda" else "default"
    return tvm.compile(mod, target, relax_pipeline=tvm.transform.Sequential([]), tir_pipeline=pipeline)


def _tensor_spec(param: tvm.ir.Var) -> TensorSpec:
    return TensorSpec(param.name, tuple(int(s) for s in param.ty.shape), str(param.ty.dtype))


def _count_calls(mod: tvm.IRModule) -> int:
    body = mod["main"].body
    return sum(isinstance(b.value, tvm.ir.Call) for block in getattr(body, "blocks", ()) for b in block.bindings)
