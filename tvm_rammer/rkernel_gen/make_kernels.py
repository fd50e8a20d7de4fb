"""All rKernels of a module: for each function the best of the constructed, logged and registered ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tvm import tirx

from ..device import DeviceSpec
from ..ir import RGraph
from ..kernel import ScheduledKernel
from .construct import choose
from .footprint.footprint import covers, footprints_of, reads_slices
from .measured import Measurements
from .registered import registered_rules
from .remembered import Made, Remembered
from .select import pareto
from .tiling import Function

_REMEMBERED = Remembered()


@dataclass(slots=True)
class Kernels:
    """The rKernels of the functions of a module.

    Parameters
    ----------
    kernels : dict of str to tuple of ScheduledKernel
        Empty for a function that cannot become an rKernel on this device: it stays a stock call.
    dropped : Counter
        Kernels that were built and not kept, counted by reason.
    """

    kernels: dict[str, tuple[ScheduledKernel, ...]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)


def make_kernels(
    graphs: Sequence[RGraph],
    functions: Mapping[str, tirx.PrimFunc],
    device: DeviceSpec,
    log: Measurements | None = None,
) -> Kernels:
    """Make the rKernels of every function that the graphs call.

    Parameters
    ----------
    graphs : sequence of RGraph
    functions : mapping of str to tirx.PrimFunc
        Fused and not scheduled, by the names that `ROperator.function` uses.
    device : DeviceSpec
    log : Measurements, optional
        A tuning log, whose records compete with the constructed kernels.

    Returns
    -------
    Kernels
    """
    found = Kernels()
    remember = log is None and not registered_rules(device.kind)
    repeated = repeated_functions(graphs)
    for name, constants in constant_parameters(graphs).items():
        function = Function(name, functions[name], device, constants, name in repeated)
        made = _REMEMBERED.get(function, partial(_make, function)) if remember else _make(function, log)
        found.kernels[name] = made.kernels
        found.dropped += made.dropped
    if device.kind == "cuda":
        from .cuda.resources import without_spills

        found.kernels = without_spills(found.kernels, device, found.dropped)
    num_inputs = {op.function: len(op.inputs) for graph in graphs for op in graph.operators}
    for name, kernels in found.kernels.items():
        best = pareto(kernels)
        found.kernels[name] = tuple(k for k in best if _writes_all(k, num_inputs[name]))
        found.dropped["beaten in all respects"] += len(kernels) - len(best)
        found.dropped["leaves a part of its output out"] += len(best) - len(found.kernels[name])
    return found


def _make(function: Function, log: Measurements | None = None) -> Made:
    """The constructed and the logged kernels of a function, with their footprints."""
    dropped = Counter[str]()
    logged = log.kernels(function) if log else ()
    chosen = choose(function, log.measured(function) if log else {}, dropped)
    return Made(tuple(_with_footprints(k, function.constants) for k in (*logged, *chosen)), dropped)


def _with_footprints(kernel: ScheduledKernel, constants: frozenset[int]) -> ScheduledKernel:
    spec, func = kernel.spec, kernel.func
    footprints = footprints_of(func, spec.num_rtasks, skip=constants)
    slices = spec.slices
    if slices is not None and not reads_slices(func, spec.num_rtasks, slices.parameter):
        slices = None  # nobody may rely on what is not proven
    return replace(kernel, spec=replace(spec, footprints=footprints, slices=slices))


def _writes_all(kernel: ScheduledKernel, num_inputs: int) -> bool:
    outputs = zip(kernel.spec.footprints[num_inputs:], kernel.func.params[num_inputs:], strict=True)
    return all(covers(footprint, kernel.spec.num_rtasks, tuple(int(n) for n in p.shape)) for footprint, p in outputs)


def constant_parameters(graphs: Sequence[RGraph]) -> dict[str, frozenset[int]]:
    """For each function, the parameters that are constants in all calls."""
    found: dict[str, frozenset[int]] = {}
    for graph in graphs:
        for op in graph.operators:
            constant = frozenset(i for i, b in enumerate(op.inputs) if graph.buffers[b].kind == "constant")
            found[op.function] = found.get(op.function, constant) & constant
    return found


def repeated_functions(graphs: Sequence[RGraph]) -> set[str]:
    """The functions that are called in the steps of loops."""
    return {op.function for graph in graphs if graph.steps > 1 for op in graph.operators}
