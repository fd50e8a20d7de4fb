"""Several rKernels for each rOperator: tilings of its function, made by TVM schedules."""

import os
from collections.abc import Mapping, Sequence

from tvm import tirx

from ..device import DeviceSpec
from ..ir import RGraph
from ..kernel import ScheduledKernel
from .cpu import cpu_kernels
from .tuned import TuningLog


def make_kernels(
    graphs: Sequence[RGraph],
    functions: Mapping[str, tirx.PrimFunc],
    device: DeviceSpec,
    tuning_logs: str | os.PathLike[str] | None = None,
) -> dict[str, tuple[ScheduledKernel, ...]]:
    """Make the rKernels of every function that the graphs call.

    Parameters
    ----------
    graphs : sequence of RGraph
    functions : mapping of str to tirx.PrimFunc
        Fused and not scheduled, by the names that `ROperator.function` uses.
    device : DeviceSpec
    tuning_logs : path, optional
        A MetaSchedule database; its records compete with the constructed kernels.

    Returns
    -------
    dict of str to tuple of ScheduledKernel
        Empty for a function that cannot become an rKernel on this device: it stays a stock call.
    """
    constants = constant_parameters(graphs)
    if device.kind == "cpu":
        log = TuningLog(tuning_logs) if tuning_logs is not None else None
        return {
            name: (
                *(log.kernels(name, functions[name], device) if log else ()),
                *cpu_kernels(name, functions[name], device, constants[name]),
            )
            for name in constants
        }
    from .cuda import cuda_kernels

    return {name: cuda_kernels(name, functions[name], device) for name in constants}


def constant_parameters(graphs: Sequence[RGraph]) -> dict[str, frozenset[int]]:
    """For each function, the parameters that are constants wherever it is called."""
    found: dict[str, frozenset[int]] = {}
    for graph in graphs:
        for op in graph.operators:
            constant = frozenset(i for i, b in enumerate(op.inputs) if graph.buffers[b].kind == "constant")
            found[op.function] = found.get(op.function, constant) & constant
    return found


__all__ = ["constant_parameters", "make_kernels"]
