"""Models -> the distinct functions that their operators call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx

from .. import relay_passes
from ..compilation.splitting import split_long_sums
from ..compilation.target import tvm_target
from ..device import DeviceSpec
from ..rkernel_gen import constant_parameters
from ..rkernel_gen.construct import space
from ..rkernel_gen.tiling import Function, Tiling


@dataclass(frozen=True, slots=True)
class Task:
    """A function to tune.

    Parameters
    ----------
    function : Function
    num_inputs : int
        Its first parameters; the others are outputs.
    calls : int
        How many operators of the models call it.
    space : tuple of Tiling
        Not empty, the one that is predicted to be fastest first.
    """

    function: Function
    num_inputs: int
    calls: int
    space: tuple[Tiling, ...]

    @property
    def predicted_us(self) -> float:
        """Predicted time of one call, in microseconds."""
        return self.space[0].operator_us(self.function.device.units)

    @property
    def total_us(self) -> float:
        """Predicted time of all its calls, in microseconds."""
        return self.calls * self.predicted_us


def tasks_of(
    models: Sequence[Any], device: DeviceSpec, shapes: Mapping[str, Sequence[int]] | None = None
) -> tuple[Task, ...]:
    """Find the functions of some models.

    Parameters
    ----------
    models : sequence
        Each as `tvm_rammer.compile` takes it.
    device : DeviceSpec
    shapes : mapping of str to sequence of int, optional
        Static shapes of inputs; every model has those inputs.

    Returns
    -------
    tuple of Task
        Those that have tilings on this device, by falling total time. Equal functions are one, whatever their names.

    Raises
    ------
    ModelError
        A model cannot be read.
    """
    found: dict[str, Task] = {}
    for model in models:
        for task in _tasks(model, device, shapes):
            known = found.get(task.function.key)
            found[task.function.key] = task if known is None else replace(known, calls=known.calls + task.calls)
    return tuple(sorted(found.values(), key=lambda t: (-t.total_us, t.function.key)))


def _tasks(model: Any, device: DeviceSpec, shapes: Mapping[str, Sequence[int]] | None) -> list[Task]:
    target = tvm_target(device)
    mod = split_long_sums(relay_passes.prepare(target)(relay_passes.load_model(model, shapes)), device)
    graphs = [region.graph for region in relay_passes.partition(mod).regions]
    functions = {gv.name_hint: f for gv, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    operators = [op for graph in graphs for op in graph.operators]
    made = []
    for name, constants in constant_parameters(graphs).items():
        calls = [op for op in operators if op.function == name]
        function = Function(name, functions[name], device, constants)
        if tilings := space(function):
            made.append(Task(function, len(calls[0].inputs), len(calls), tilings))
    return made
