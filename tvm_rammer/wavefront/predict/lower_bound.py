"""Lower bounds on the makespan of every plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...device import DeviceSpec
from ...ir import RGraph, RKernel, RProgram
from ..cost import CostModel
from ..problem import Problem, make_problem
from ..units import GBPS
from .bandwidth import rtask_bytes
from .lower_bound_choice import choice_us
from .lower_bound_path import Readings, critical_path_us


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Lower bounds on the makespan of a graph, in microseconds.

    Parameters
    ----------
    launch_us : float
        One launch; the others start after it.
    critical_path_us : float
        The longest chain of dependent rTasks, with fastest kernels and the cheapest synchronisation.
    area_us : float
        The least work of all operators, spread evenly over the vEUs.
    bandwidth_us : float
        The bytes that must move, over the bandwidth.
    choice_us : float
        Paths and work together, for each operator has one kernel, not the fastest for the one and the most efficient
        for the other.
    """

    launch_us: float
    critical_path_us: float
    area_us: float
    bandwidth_us: float
    choice_us: float

    @property
    def best_us(self) -> float:
        """The largest of the four, with the launch."""
        return self.launch_us + max(self.critical_path_us, self.area_us, self.bandwidth_us, self.choice_us)

    def gap(self, programs: Sequence[RProgram]) -> float:
        """How much slower a plan is than the bound, in parts of the bound: 0 for a plan that is proven optimal."""
        makespan_us = sum(program.makespan_us for program in programs)
        return makespan_us / self.best_us - 1.0 if self.best_us else 0.0


def lower_bound(
    graph: RGraph,
    kernels: Mapping[str, Sequence[RKernel]],
    device: DeviceSpec,
    *,
    veus: int,
    cost: CostModel | None = None,
) -> LowerBound:
    """Bound the makespan of every plan of a graph from below.

    Parameters
    ----------
    graph, kernels, device, veus, cost
        As in `schedule`.

    Returns
    -------
    LowerBound

    Raises
    ------
    ScheduleError
        As `schedule`.

    Notes
    -----
    Path, area and choice hold for every plan under the cost model; of a loop the path is that of one step. Of the
    bytes, inputs, constants and outputs count once, less what the last-level cache can have kept since the run before.
    That is a bound of the device: kernels whose predicted times ignore memory may seem to be faster.
    """
    problem = make_problem(graph, kernels, cost or CostModel.of(device, veus), veus, "auto")
    operators = range(len(graph.operators))
    work_us = sum(min(problem.cost.work_us(k) for k in problem.candidates(o)) for o in operators)
    launch_us = problem.cost.launch_us if graph.operators else 0.0
    work_us *= graph.steps
    readings = Readings(problem)
    path_us, memory_us = critical_path_us(readings), _bandwidth_us(problem, device)
    return LowerBound(launch_us, path_us, work_us / veus, memory_us, choice_us(readings))


def _bandwidth_us(problem: Problem, device: DeviceSpec) -> float:
    graph = problem.graph
    memory_us = max(0, _moved_bytes(graph) - device.cache_bytes) / (device.memory_gbps * GBPS)
    if problem.cost.shared_gbps is None:
        return memory_us
    beyond = sum(
        min(rtask_bytes(graph, o, k) * k.num_rtasks for k in problem.candidates(o)) for o in range(len(graph.operators))
    )
    return max(memory_us, graph.steps * beyond / (problem.cost.shared_gbps * GBPS))


def _moved_bytes(graph: RGraph) -> int:
    """Bytes of inputs, constants and outputs that are touched, each once, whatever views there are of it."""
    touched = {b for op in graph.operators for b in op.touched()}
    extents = {graph.extent(graph.extent(b).base if graph.steps > 1 else b) for b in touched}
    counted: dict[int, int] = {}
    moved = 0
    for e in sorted(extents, key=lambda e: (e.base, e.start)):
        if graph.buffers[e.base].kind != "intermediate":
            moved += max(0, e.end - max(e.start, counted.get(e.base, 0)))
            counted[e.base] = max(e.end, counted.get(e.base, 0))
    return moved
