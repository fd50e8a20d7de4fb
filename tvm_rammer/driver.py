"""The driver: `compile` and `compile_together`, stage after stage."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import tvm

from . import relay_passes
from .compilation.guard import guarded
from .compilation.record import Compilation
from .compilation.regions import plan_regions
from .compilation.stages import build, find_kernels
from .compilation.target import resolve_device, with_threads
from .errors import ModelError
from .relay_passes.bindings import body_blocks
from .runtime.explore import Alternative, Exploration, plan_alternatives
from .runtime.explore_log import model_key, recall, remember
from .runtime.module import CONCURRENCY, RammerModule
from .runtime.tensors import TensorSpec, tensor_specs
from .wavefront import PolicyOptions


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
    concurrency: int = CONCURRENCY,
    threads: int | None = None,
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
        That many first calls cycle through plans whose predicted times are close; then the fastest is kept (Astra,
        ASPLOS 2019). Each plan is compiled, so compiling takes up to six times as long. The result is appended to
        `tuning_logs`, where they are given, so that the next compilation need not explore.
    concurrency : int
        How many threads' calls may run at the same time on a CPU, each with a workspace of its own; others wait. With 1
        one call runs at a time. A module for a GPU always runs one call at a time.
    threads : int, optional
        vEUs of a CPU: how many threads work on one call, as far as there are processors. By default one for each core
        that the process may use (`TVM_NUM_THREADS`, affinity, quota).

    Returns
    -------
    RammerModule

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    mod = relay_passes.load_model(model, shapes)
    record = Compilation(with_threads(resolve_device(target), threads), policy, sync, options)
    return _compile(mod, tensor_specs(mod), record, tuning_logs, explore, concurrency)


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
    concurrency: int = CONCURRENCY,
    threads: int | None = None,
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
    target, policy, sync, options, tuning_logs, explore, concurrency, threads
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
    record = Compilation(with_threads(resolve_device(target), threads), policy, sync, options)
    record.num_params = tuple(len(specs) for specs in inputs)
    record.shares = tuple(shares) if shares is not None else None
    joined = relay_passes.join_models(mods)
    return _compile(joined, [spec for specs in inputs for spec in specs], record, tuning_logs, explore, concurrency)


def _compile(
    mod: tvm.IRModule,
    inputs: Sequence[TensorSpec],
    record: Compilation,
    tuning_logs: str | os.PathLike[str] | None,
    explore: int,
    concurrency: int,
) -> RammerModule:
    for name, number, least in (("explore", explore, 0), ("concurrency", concurrency, 1)):
        if not isinstance(number, int) or number < least:
            raise ModelError(f"{name} is {number!r}; give an integer, at least {least}")
    if record.options is not None and not isinstance(record.options, PolicyOptions):
        raise ModelError(f"options is {record.options!r}; give a tvm_rammer.wavefront.PolicyOptions")
    with guarded(mod):
        return _stages(mod, inputs, record, tuning_logs, explore, concurrency)


def _stages(
    mod: tvm.IRModule,
    inputs: Sequence[TensorSpec],
    record: Compilation,
    tuning_logs: str | os.PathLike[str] | None,
    explore: int,
    concurrency: int,
) -> RammerModule:
    record.operators = _count_calls(mod)
    module = find_kernels(mod, record, tuning_logs)
    module = plan_regions(module, record)
    if not explore:
        return RammerModule(Exploration([Alternative("", record, build(module, record))], 0), inputs, concurrency)
    plans, key = plan_alternatives(module, record), model_key(record)
    known = recall(tuning_logs, key, record) if tuning_logs is not None else None
    plans = [plan for plan in plans if plan[0] == known] or plans
    made = [Alternative(label, plan, build(module, plan)) for label, plan in plans]
    if tuning_logs is None:
        return RammerModule(Exploration(made, explore), inputs, concurrency)
    return RammerModule(Exploration(made, explore, partial(remember, tuning_logs, key)), inputs, concurrency)


def _count_calls(mod: tvm.IRModule) -> int:
    return sum(isinstance(b.value, tvm.ir.Call) for block in body_blocks(mod["main"]) for b in block.bindings)
