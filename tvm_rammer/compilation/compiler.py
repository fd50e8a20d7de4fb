"""The compiler: a request becomes plans that can run, stage after stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tvm

from .. import relay_passes
from ..ir import LENGTH, Length
from ..onnx_metadata import take_metadata
from ..relay_passes.bindings import body_blocks
from ..relay_passes.loops.body import is_rolled_up, steps_of_loops
from ..runtime.alternatives import plan_alternatives
from ..runtime.explore import Alternative, Exploration
from ..runtime.explore_log import model_key, recall, remember
from ..runtime.length import user_shape
from ..runtime.tensors import TensorSpec, output_specs, tensor_specs
from ..serial import serial
from .guard import guarded
from .record import Compilation
from .regions import plan_regions
from .request import Request
from .stages import build, find_kernels, lower
from .unrolling import check_loops


@dataclass(frozen=True, slots=True)
class Loaded:
    """The models of a request as one Relax module.

    Parameters
    ----------
    mod : tvm.IRModule
    inputs, outputs : tuple of TensorSpec
    num_params : tuple of int
        How many inputs each of several joined models has; empty for a single model.
    length : Length or None
        What the module learns from each call; `inputs` and `outputs` have -1 there.
    rolled : bool
        Whether it has loops of what the model has step by step.
    metadata : mapping or None
        What the ONNX file of a single model says of itself (`onnx_metadata`).
    """

    mod: tvm.IRModule
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    num_params: tuple[int, ...] = ()
    length: Length | None = None
    rolled: bool = False
    metadata: Mapping[str, Any] | None = None


def load_request(request: Request) -> Loaded:
    """Read and import the models of a request.

    Raises
    ------
    ModelError
        One of them cannot be read or imported.
    LoopError
        It has a loop that cannot stay one, or loops that are faster unrolled.
    """
    loaded = [
        relay_passes.load_model(
            model,
            shapes,
            symbolic=request.symbolic,
            loops=request.keeps_loops,
            join=request.joins_loops,
            roll=request.rolls_up,
            data_loops=request.keeps_data_loops,
            length=request.length,
        )
        for model, shapes in zip(request.models, request.shapes, strict=True)
    ]
    mods, metadata = zip(*map(take_metadata, loaded), strict=True)
    if request.length is not None:
        return _of_any_length(mods[0], metadata[0])
    check_loops([steps for mod in mods for steps in steps_of_loops(mod)], request.device)
    if not request.joined:
        specs = tensor_specs(mods[0]) if request.symbolic else _static(tensor_specs(mods[0]))
        return Loaded(mods[0], specs, output_specs(mods[0]), rolled=is_rolled_up(mods[0]), metadata=metadata[0])
    inputs = [_static(tensor_specs(mod, f"model{number}_")) for number, mod in enumerate(mods)]
    outputs = [output_specs(mod, f"model{number}_") for number, mod in enumerate(mods)]
    num_params = tuple(len(specs) for specs in inputs)
    return Loaded(relay_passes.join_models(mods), _flat(inputs), _flat(outputs), num_params)


def _static(specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs of static shapes: extents of 0 are open for TVM, and what is compiled is for no other ones."""
    return tuple(replace(spec, shape=tuple(max(0, extent) for extent in spec.shape)) for spec in specs)


def _of_any_length(mod: tvm.IRModule, metadata: Mapping[str, Any] | None) -> Loaded:
    length = Length.of(str(mod["main"].attrs[LENGTH]))
    inputs = map(user_shape, tensor_specs(mod)[:-1], length.inputs)
    outputs = map(user_shape, output_specs(mod), length.outputs)
    return Loaded(mod, tuple(inputs), tuple(outputs), length=length, metadata=metadata)


@serial
def compile_loaded(request: Request, loaded: Loaded) -> Exploration:
    """Compile the models of a request.

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    LoopError
        It has a loop that cannot stay one.
    """
    record = Compilation(request.device, request.policy, request.sync, request.options)
    record.num_params, record.shares, record.metadata = loaded.num_params, request.shares, loaded.metadata
    with guarded(loaded.mod):
        return _stages(loaded.mod, record, request)


@serial
def lower_loaded(request: Request, loaded: Loaded) -> tuple[tvm.IRModule, Compilation]:
    """Plan the model of a request, and lower it to what TVM's code generator takes; raises as `compile_loaded`."""
    record = Compilation(request.device, request.policy, request.sync, request.options)
    with guarded(loaded.mod):
        return lower(plan_regions(find_kernels(loaded.mod, record, request.tuning_logs), record), record), record


def _stages(mod: tvm.IRModule, record: Compilation, request: Request) -> Exploration:
    record.operators = _count_calls(mod)
    logs = request.tuning_logs
    module = find_kernels(mod, record, logs)
    module = plan_regions(module, record)
    if not request.explore:
        return Exploration([Alternative("", record, build(module, record))], 0)
    plans, key = plan_alternatives(module, record), model_key(record)
    known = recall(logs, key, record) if logs is not None else None
    plans = [plan for plan in plans if plan[0] == known] or plans
    made = [Alternative(label, plan, build(module, plan)) for label, plan in plans]
    if logs is None:
        return Exploration(made, request.explore)
    return Exploration(made, request.explore, partial(remember, logs, key))


def _count_calls(mod: tvm.IRModule) -> int:
    return sum(isinstance(b.value, tvm.ir.Call) for block in body_blocks(mod["main"]) for b in block.bindings)


def _flat(specs: Sequence[Sequence[TensorSpec]]) -> tuple[TensorSpec, ...]:
    return tuple(spec for some in specs for spec in some)
