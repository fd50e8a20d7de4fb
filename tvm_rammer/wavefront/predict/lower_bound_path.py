"""The longest chain of dependent rTasks, whatever the choice of kernels and vEUs."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import RKernel
from ..plan.dependences import needs, union
from ..problem import Problem

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Reading:
    """How an operator depends on another, for one pair of kernels.

    Parameters
    ----------
    least_us, most_us : float
        When the rTask that needs the fewest of the other's rTasks, and the one that needs the most, can know that they
        have ended; counted from the first start of these.
    least_all, most_all : bool
        Whether these needs are all rTasks of the other operator.
    covers : bool
        Whether each of the other's rTasks is needed by some rTask.
    """

    least_us: float
    most_us: float
    least_all: bool
    most_all: bool
    covers: bool


def critical_path_us(problem: Problem) -> float:
    """A lower bound on the end of every plan, its launch not counted.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    float

    Notes
    -----
    For each operator and each of its kernels follow bounds on its first start and its last end from those of the
    operators that it depends on, each with the kernel for which that is earliest.
    """
    path = _Path(problem)
    starts: list[list[float]] = []
    ends: list[list[float]] = []
    for operator in range(len(problem.graph.operators)):
        bounds = [
            _bounds(problem, operator, kernel, path.readings(operator, r), starts, ends)
            for r, kernel in enumerate(problem.candidates(operator))
        ]
        starts.append([start_us for start_us, _ in bounds])
        ends.append([end_us for _, end_us in bounds])
    return max(map(min, ends), default=0.0)


def _bounds(
    problem: Problem,
    operator: int,
    kernel: RKernel,
    readings: Sequence[Sequence[_Reading]],
    starts: Sequence[Sequence[float]],
    ends: Sequence[Sequence[float]],
) -> tuple[float, float]:
    """First start and last end of an operator with one kernel, given those of all before it.

    `readings` has for each predecessor one entry for each of its kernels.
    """
    first = last = all_covered = 0.0
    for before, found in zip(problem.predecessors[operator], readings, strict=True):
        bounds = list(zip(found, starts[before], ends[before], strict=True))
        first = max(first, min(max(start + r.least_us, end if r.least_all else 0.0) for r, start, end in bounds))
        last = max(last, min(max(start + r.most_us, end if r.most_all else 0.0) for r, start, end in bounds))
        all_covered = max(all_covered, min(end if r.covers else 0.0 for r, _, end in bounds))
    rtask_us = problem.cost.rtask_us(kernel)
    return first, max(first + problem.cost.operator_us(kernel, problem.veus), last + rtask_us, all_covered + rtask_us)


class _Path:
    """Remembers how functions depend on each other: blocks of a network repeat."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        cost = problem.cost
        self.gap_us = min(p for p in (cost.signal_us, cost.barrier_us, cost.launch_us) if p is not None)
        self._found: dict[tuple[str, str, tuple[tuple[int, int], ...]], list[list[_Reading]]] = {}

    def readings(self, operator: int, kernel: int) -> list[list[_Reading]]:
        """For each operator that another with one of its kernels depends on: one for each kernel of that operator."""
        return [self._pairs(before, operator)[kernel] for before in self.problem.predecessors[operator]]

    def _pairs(self, before: int, operator: int) -> list[list[_Reading]]:
        graph = self.problem.graph
        writer, reader = graph.operators[before], graph.operators[operator]
        between = ((i, n) for i, b in enumerate(reader.inputs) for n, w in enumerate(writer.outputs) if b == w)
        key = writer.function, reader.function, tuple(between)
        if key not in self._found:
            self._found[key] = [
                [self._reading(before, w, operator, r) for w in self.problem.candidates(before)]
                for r in self.problem.candidates(operator)
            ]
        return self._found[key]

    def _reading(self, before: int, writes: RKernel, operator: int, reads: RKernel) -> _Reading:
        everything = (1 << writes.num_rtasks) - 1
        wanted = needs(self.problem.graph, before, writes, operator, reads) or (everything,)
        counts = [bits.bit_count() for bits in wanted]
        least, most = min(counts), max(counts)
        rtask_us, veus = self.problem.cost.rtask_us(writes), self.problem.veus
        return _Reading(
            known_us(rtask_us, least, veus, self.gap_us),
            known_us(rtask_us, most, veus, self.gap_us),
            least == writes.num_rtasks,
            most == writes.num_rtasks,
            union(wanted, range(len(wanted))) == everything,
        )


def known_us(rtask_us: float, num_rtasks: int, veus: int, gap_us: float) -> float:
    """When one vEU can know at best that equal rTasks have ended, which it and others begin at 0.

    In time T it runs T / rtask_us of them itself, each other vEU those that end `gap_us` earlier.
    """
    alone_us = rtask_us * num_rtasks
    if veus == 1 or num_rtasks <= 1 or not rtask_us:
        return alone_us

    def enough(time_us: float) -> bool:
        own = int(time_us / rtask_us + _ROUNDING)
        elsewhere = max(0, int((time_us - gap_us) / rtask_us + _ROUNDING))
        return own + (veus - 1) * elsewhere >= num_rtasks

    counts = range(num_rtasks + 1)
    own = bisect_left(counts, True, key=lambda n: enough(n * rtask_us))
    elsewhere = bisect_left(counts, True, key=lambda n: enough(gap_us + n * rtask_us))
    return min(own * rtask_us, gap_us + elsewhere * rtask_us, alone_us)
