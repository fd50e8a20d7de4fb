"""How fast a plan could be at best: what no policy can beat."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..device import DeviceSpec
from ..ir import RGraph, RKernel, RProgram
from .bandwidth import rtask_bytes
from .cost import CostModel
from .problem import Problem, make_problem

_BYTES_PER_US = 1e3
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Lower bounds on the makespan of a graph, in microseconds.

    Parameters
    ----------
    launch_us : float
        One launch; the others start after it.
    critical_path_us : float
        The longest chain of dependent operators, each with its fastest kernel and the cheapest synchronisation.
    area_us : float
        The least work of all operators, spread evenly over the vEUs.
    bandwidth_us : float
        Bytes that must move over the bandwidth there is.
    """

    launch_us: float
    critical_path_us: float
    area_us: float
    bandwidth_us: float

    @property
    def best_us(self) -> float:
        """The largest of the three, with the launch."""
        return self.launch_us + max(self.critical_path_us, self.area_us, self.bandwidth_us)

    def gap(self, programs: Sequence[RProgram]) -> float:
        """By which part of the bound a plan is slower than it: 0 for a plan that is proven best."""
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
    Path and area hold for every plan as the simulator prices it. Of the bytes, inputs, constants and outputs count
    once; what the last-level cache can have kept since the run before is taken off. That is a bound of the device,
    and kernels whose predicted times ignore memory may seem to beat it.
    """
    problem = make_problem(graph, kernels, cost or CostModel.of(device), veus, "auto")
    operators = range(len(graph.operators))
    work = sum(min(problem.cost.rtask_us(k) * k.num_rtasks for k in problem.candidates(o)) for o in operators)
    launch_us = problem.cost.launch_us if graph.operators else 0.0
    return LowerBound(launch_us, _critical_path_us(problem), work / veus, _bandwidth_us(problem, device))


def _critical_path_us(problem: Problem) -> float:
    """The last end, if each operator has all vEUs for itself and begins as soon as what it reads allows.

    An rTask that reads all that an operator writes begins after the operator's last rTask. One that reads a part
    begins after the first at best.
    """
    cost, veus = problem.cost, problem.veus
    prices = [p for p in (cost.signal_us, cost.barrier_us, cost.launch_us) if p is not None]
    gap_us = min(prices)
    times: dict[str, tuple[float, float, float]] = {}
    for function in dict.fromkeys(op.function for op in problem.graph.operators):
        made = [(cost.rtask_us(k), k.num_rtasks) for k in problem.kernels[function]]
        first = min(us for us, _ in made)
        whole = min(us * -(-n // veus) for us, n in made)
        known = min(_known_us(us, n, veus, gap_us) for us, n in made)
        times[function] = first, whole, known
    begin_us: list[float] = []
    end_us = 0.0
    for operator, op in enumerate(problem.graph.operators):
        begin = 0.0
        for before in problem.predecessors[operator]:
            first, _, known = times[problem.graph.operators[before].function]
            begin = max(begin, begin_us[before] + (known if _reads_all(problem, operator, before) else first))
        begin_us.append(begin)
        end_us = max(end_us, begin + times[op.function][1])
    return end_us


def _known_us(rtask_us: float, num_rtasks: int, veus: int, gap_us: float) -> float:
    """When one vEU can know at best that equal rTasks are done, which it and others begin at 0.

    In time T it runs T / rtask_us of them itself, each other one those that end a signal earlier.
    """
    alone_us = rtask_us * num_rtasks
    if veus == 1 or num_rtasks == 1 or not rtask_us:
        return alone_us

    def enough(time_us: float) -> bool:
        own = int(time_us / rtask_us + _ROUNDING)
        elsewhere = max(0, int((time_us - gap_us) / rtask_us + _ROUNDING))
        return own + (veus - 1) * elsewhere >= num_rtasks

    counts = range(num_rtasks + 1)
    own = bisect_left(counts, True, key=lambda n: enough(n * rtask_us))
    elsewhere = bisect_left(counts, True, key=lambda n: enough(gap_us + n * rtask_us))
    return min(own * rtask_us, gap_us + elsewhere * rtask_us, alone_us)


def _reads_all(problem: Problem, operator: int, before: int) -> bool:
    """Whether each rTask of an operator must wait for all rTasks of another, whatever kernels are chosen."""
    graph = problem.graph
    writer = graph.operators[before]
    positions = [n for n, b in enumerate(graph.operators[operator].inputs) if b in writer.outputs]
    if len(writer.outputs) > 1:
        return not any(k.regions for f in (writer.function, graph.operators[operator].function)
                       for k in problem.kernels[f])  # fmt: skip
    return all(
        not kernel.regions or any(kernel.regions[n] is None for n in positions)
        for kernel in problem.candidates(operator)
    )


def _bandwidth_us(problem: Problem, device: DeviceSpec) -> float:
    graph = problem.graph
    touched = {b for op in graph.operators for b in (*op.inputs, *op.outputs)}
    moved = sum(graph.buffers[b].nbytes for b in touched if graph.buffers[b].kind != "intermediate")
    memory_us = max(0, moved - device.cache_bytes) / (device.memory_gbps * _BYTES_PER_US)
    if problem.cost.shared_gbps is None:
        return memory_us
    beyond = sum(
        min(rtask_bytes(graph, o, k) * k.num_rtasks for k in problem.candidates(o)) for o in range(len(graph.operators))
    )
    return max(memory_us, beyond / (problem.cost.shared_gbps * _BYTES_PER_US))
