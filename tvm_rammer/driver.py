"""The whole compiler on one page: stage after stage."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import tvm

from . import relay_passes
from .compilation.record import Compilation
from .compilation.regions import plan_regions
from .compilation.stages import build, find_kernels
from .compilation.target import resolve_device
from .errors import CodegenError, ModelError, RammerError, last_line
from .runtime.explore import Alternative, Exploration, plan_alternatives
from .runtime.explore_log import model_key, recall, remember
from .runtime.module import RammerModule
from .runtime.tensors import TensorSpec, tensor_specs
from .wavefront import PolicyOptions

_MOST_NAMED = 8
"""Operators that a message names."""


def compile(
    model: Any,
    *,
    target: Any = "cpu",
    shapes: Mapping[str, Sequence[int]] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    options: PolicyOptions | None = None,
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
    options : PolicyOptions, optional
        What the policies `ios` and `search` may be told (`tvm_rammer.wavefront.PolicyOptions`).
    tuning_logs : path, optional
        What `tvm-rammer tune` wrote, or a MetaSchedule database: its records compete as rKernels.
    explore : int
        The first so many calls take turns on plans that the cost model cannot tell apart; then the fastest stays
        (Astra, ASPLOS 2019). Each plan is compiled, so compiling takes up to six times as long. What was learnt is
        appended to `tuning_logs`, where they are given, and saves the next compilation the trial.

    Returns
    -------
    RammerModule

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    mod = relay_passes.load_model(model, shapes)
    record = Compilation(resolve_device(target), policy, sync, options)
    return _compile(mod, tensor_specs(mod), record, tuning_logs, explore)


def compile_together(
    models: Sequence[Any],
    *,
    shares: Sequence[float] | None = None,
    target: Any = "cpu",
    shapes: Sequence[Mapping[str, Sequence[int]] | None] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    options: PolicyOptions | None = None,
    tuning_logs: str | os.PathLike[str] | None = None,
    explore: int = 0,
) -> RammerModule:
    """Compile several models to one module: its rPrograms run them side by side on one vDevice.

    Parameters
    ----------
    models : sequence
        Each as `compile` takes it.
    shares : sequence of float, optional
        A positive number for each model, which gets vEUs of its own in this proportion. Without shares all models use
        all vEUs; of operators that the policy holds equal, those of earlier models come first.
    shapes : sequence of (mapping or None), optional
        For each model, as `compile` takes them.
    target, policy, sync, options, tuning_logs, explore
        As in `compile`.

    Returns
    -------
    RammerModule
        Its inputs are those of all models; input `x` of the second one is called `model1_x`. It returns a tuple with
        the result of each.

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    if not models or len(shapes or models) != len(models) or len(shares or models) != len(models):
        raise ModelError(
            f"{len(models)} models, {len(shapes or ())} shapes, {len(shares or ())} shares; give at least one model, "
            "and for each one share and one mapping of shapes, or none at all"
        )
    mods = [relay_passes.load_model(m, s) for m, s in zip(models, shapes or [None] * len(models), strict=True)]
    inputs = [tensor_specs(mod, f"model{number}_") for number, mod in enumerate(mods)]
    record = Compilation(resolve_device(target), policy, sync, options)
    record.num_params = tuple(len(specs) for specs in inputs)
    record.shares = tuple(shares) if shares is not None else None
    joined = relay_passes.join_models(mods)
    return _compile(joined, [spec for specs in inputs for spec in specs], record, tuning_logs, explore)


def _compile(
    mod: tvm.IRModule,
    inputs: Sequence[TensorSpec],
    record: Compilation,
    tuning_logs: str | os.PathLike[str] | None,
    explore: int,
) -> RammerModule:
    with _guarded(mod):
        return _stages(mod, inputs, record, tuning_logs, explore)


def _stages(
    mod: tvm.IRModule,
    inputs: Sequence[TensorSpec],
    record: Compilation,
    tuning_logs: str | os.PathLike[str] | None,
    explore: int,
) -> RammerModule:
    record.operators = _count_calls(mod)
    module = find_kernels(mod, record, tuning_logs)
    plan_regions(module, record)
    if not explore:
        return RammerModule(Exploration([Alternative("", record, build(module, record))], 0), inputs)
    plans, key = plan_alternatives(module, record), model_key(record)
    known = recall(tuning_logs, key, record) if tuning_logs is not None else None
    plans = [plan for plan in plans if plan[0] == known] or plans
    made = [Alternative(label, plan, build(module, plan)) for label, plan in plans]
    if tuning_logs is None:
        return RammerModule(Exploration(made, explore), inputs)
    return RammerModule(Exploration(made, explore, partial(remember, tuning_logs, key)), inputs)


def _count_calls(mod: tvm.IRModule) -> int:
    body = mod["main"].body
    return sum(isinstance(b.value, tvm.ir.Call) for block in getattr(body, "blocks", ()) for b in block.bindings)


@contextlib.contextmanager
def _guarded(mod: tvm.IRModule) -> Iterator[None]:
    """Let no exception of TVM's out: it becomes ours, names the operator where it is known, and keeps its cause."""
    try:
        yield
    except RammerError:
        raise
    except Exception as error:
        where = _operator_at(error) or f"one of the operators {', '.join(_operators(mod))}"
        raise CodegenError(
            f"the compilation fails at {where}: {type(error).__name__}: {last_line(error)}; "
            "export the model without it, or with another type or size"
        ) from error


def _operators(mod: tvm.IRModule) -> list[str]:
    """The names of the operators of a loaded module, each once."""
    values = (b.value for block in getattr(mod["main"].body, "blocks", ()) for b in block.bindings)
    calls = (value for value in values if isinstance(value, tvm.ir.Call) and isinstance(value.op, tvm.ir.Op))
    names = (c.args[0].name_hint if c.op.name == "relax.call_tir" else c.op.name.removeprefix("relax.") for c in calls)
    return list(dict.fromkeys(names))[:_MOST_NAMED] or ["of the model"]


def _operator_at(error: BaseException) -> str:
    """The operator or function that the innermost frames of an error worked on; empty where none is known."""
    found, trace = "", error.__traceback__
    while trace is not None:
        for value in trace.tb_frame.f_locals.values():
            if (
                isinstance(value, tvm.ir.Call)
                and isinstance(value.op, tvm.ir.Op)
                and value.op.name.startswith("relax.")
            ):
                found = f"the operator {value.op.name.removeprefix('relax.')}"
            elif isinstance(value, tvm.tirx.PrimFunc) and value.attrs and "global_symbol" in value.attrs:
                found = f"the function {value.attrs['global_symbol']}"
        trace = trace.tb_next
    return found
