"""The scheduling problem: a graph, its candidate kernels, the vEUs and the cost model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import ScheduleError
from ..ir import RGraph, RKernel
from .cost import CostModel
from .options import DEFAULTS, PolicyOptions

SYNCS = ("auto", "global")
"""`auto` waits only where a dependence requires it; `global` puts a barrier between consecutive waves."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A scheduling problem, checked; policies read it and never change it.

    Parameters
    ----------
    graph : RGraph
    predecessors : tuple of tuple of int
        `graph.predecessors()`, computed once.
    kernels : mapping of str to sequence of RKernel
        The candidates of each function.
    cost : CostModel
    veus : int
        Number of vEUs, so of lanes.
    sync : {"auto", "global"}
    options : PolicyOptions
    lanes : tuple of range
        For each operator the vEUs that may run it; empty where all may.
    """

    graph: RGraph
    predecessors: tuple[tuple[int, ...], ...]
    kernels: Mapping[str, Sequence[RKernel]]
    cost: CostModel
    veus: int
    sync: str
    options: PolicyOptions = DEFAULTS
    lanes: tuple[range, ...] = ()

    def ready_us(self, operator: int, ready_us: Sequence[float]) -> Sequence[float]:
        """When each vEU can begin an operator, given when each is free; infinite for those that may not run it."""
        if not self.lanes:
            return ready_us
        return [us if veu in self.lanes[operator] else math.inf for veu, us in enumerate(ready_us)]

    def candidates(self, operator: int) -> Sequence[RKernel]:
        """The kernels that an operator may use."""
        return self.kernels[self.graph.operators[operator].function]


def make_problem(
    graph: RGraph, kernels: Mapping[str, Sequence[RKernel]], cost: CostModel, veus: int, sync: str
) -> Problem:
    """Check the input of `schedule` and put it together.

    Raises
    ------
    ScheduleError
        No vEU, an unknown `sync`, a function without kernels or with impossible ones, or operators that
        are not in topological order.
    """
    if veus < 1:
        raise ScheduleError(f"veus is {veus}; a plan needs at least one vEU")
    if sync not in SYNCS:
        raise ScheduleError(f"unknown sync {sync!r}; choose one of {', '.join(SYNCS)}")
    for function in dict.fromkeys(op.function for op in graph.operators):
        if not kernels.get(function):
            raise ScheduleError(f"function {function!r} has no rKernel; give at least one candidate")
        for kernel in kernels[function]:
            _check_kernel(function, kernel)
    predecessors = graph.predecessors()
    for o, before in enumerate(predecessors):
        if before and before[-1] >= o:
            late = graph.operators[before[-1]].name
            raise ScheduleError(
                f"operator {graph.operators[o].name!r} reads what {late!r} writes, which does not come before it; "
                "an RGraph lists its operators in topological order"
            )
    return Problem(graph, predecessors, kernels, cost, veus, sync)


def _check_kernel(function: str, kernel: RKernel) -> None:
    if kernel.function != function:
        raise ScheduleError(
            f"kernel {kernel.name!r} implements {kernel.function!r} but is listed for {function!r}; list it by its own"
        )
    if kernel.num_rtasks < 1:
        raise ScheduleError(f"kernel {kernel.name!r} has {kernel.num_rtasks} rTasks; it needs at least one")
    if not (math.isfinite(kernel.rtask_us) and kernel.rtask_us >= 0):
        raise ScheduleError(f"kernel {kernel.name!r} has rtask_us={kernel.rtask_us}; give a time that is not negative")
