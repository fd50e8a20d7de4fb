"""Ways to run a graph on a GPU beside rPrograms, each with its predicted time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

from ...device import DeviceSpec
from ...ir import RGraph, RKernel, RProgram
from ..cost import CostModel
from ..plan.select_rkernels import fastest, wave_us
from ..policies.waves import waves
from ..problem import Problem, make_problem

LAUNCHES, GRAPH, WAVES, RPROGRAMS = "a launch an operator", "a CUDA graph", "a launch a wave", "rPrograms"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a graph.

    Parameters
    ----------
    name : str
        `LAUNCHES`: each operator's fastest kernel, launched by itself in a stream. `GRAPH`: the same kernels as nodes
        of a CUDA graph, with the graph's own edges. `WAVES`: a launch for each wave. `RPROGRAMS`: what was planned.
    kernels : int
        How many are launched, or nodes of the graph.
    us : float
        Predicted time in microseconds.
    """

    name: str
    kernels: int
    us: float


def predict_ways(
    graph: RGraph, kernels: Mapping[str, Sequence[RKernel]], device: DeviceSpec, programs: Sequence[RProgram]
) -> tuple[Way, ...]:
    """Predict all ways to run a graph.

    Parameters
    ----------
    graph : RGraph
        Without steps; with all its copies, which only rPrograms can do without.
    kernels : mapping of str to sequence of RKernel
        The candidates of each function.
    device : DeviceSpec
        Its `launch_us` is what a launch costs, its `node_us` an edge of a CUDA graph.
    programs : sequence of RProgram
        What was planned for the graph.

    Returns
    -------
    tuple of Way
        The fastest first; of equal ones rPrograms.
    """
    problem = make_problem(graph, kernels, CostModel.of(device), device.units, "auto")
    operators, launch_us = len(graph.operators), device.launch_us
    fringe = waves(problem.predecessors)
    ways = (
        Way(RPROGRAMS, len(programs), sum(program.makespan_us for program in programs)),
        Way(GRAPH, operators, launch_us + _graph_us(problem, device.node_us or launch_us)),
        Way(WAVES, len(fringe), sum(launch_us + wave_us(wave, problem) for wave in fringe)),
        Way(LAUNCHES, operators, sum(launch_us + _alone_us(problem, o) for o in range(operators))),
    )
    return tuple(sorted(ways, key=lambda way: way.us))


def _alone_us(problem: Problem, operator: int) -> float:
    return problem.cost.operator_us(fastest(problem, operator), problem.veus)


def _graph_us(problem: Problem, node_us: float) -> float:
    """The makespan of operators each of which begins `node_us` after the last one that it depends on has ended.

    Blocks go to units as the hardware gives them out: those of the operator that was ready first, to the unit that is
    free first.
    """
    following: list[list[int]] = [[] for _ in problem.predecessors]
    for operator, before in enumerate(problem.predecessors):
        for p in before:
            following[p].append(operator)
    missing = [len(before) for before in problem.predecessors]
    ready = [(0.0, operator) for operator, count in enumerate(missing) if not count]
    heapify(ready)
    units, begins = [0.0] * problem.veus, [0.0] * len(missing)
    end_us = 0.0
    while ready:
        now, operator = heappop(ready)
        kernel, ended = fastest(problem, operator), now
        for _ in range(kernel.num_rtasks):
            free = max(units[0], now) + problem.cost.rtask_us(kernel)
            heapreplace(units, free)
            ended = max(ended, free)
        end_us = max(end_us, ended)
        for successor in following[operator]:
            begins[successor] = max(begins[successor], ended + node_us)
            missing[successor] -= 1
            if not missing[successor]:
                heappush(ready, (begins[successor], successor))
    return end_us
