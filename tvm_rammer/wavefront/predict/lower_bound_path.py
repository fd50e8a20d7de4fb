"""The longest chain of dependent rTasks, whatever the choice of kernels and vEUs."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...ir import RKernel
from ..plan.dependences import needs, union
from ..plan.overlaps import Needs
from ..problem import Problem

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Reading:
    """How an operator depends on another, for one pair of kernels.

    Parameters
    ----------
    least_us, most_us : float or None
        When the rTask that needs the fewest of the other's rTasks, and the one that needs the most, can know that they
        have ended; counted from the first start of these. None where it needs none of them.
    least_all, most_all : bool
        Whether these needs are all rTasks of the other operator.
    covers : bool
        Whether each of the other's rTasks is needed by some rTask.
    some_us : float or None
        As `least_us`, of those that need any.
    wanted : tuple of int
        For each rTask the other's rTasks that it needs, as bits.
    """

    least_us: float | None
    most_us: float | None
    least_all: bool
    most_all: bool
    covers: bool
    some_us: float | None
    wanted: Needs


@dataclass(frozen=True, slots=True)
class Bridge:
    """How an operator depends on another through a third, not all of whose rTasks need the first.

    Each rTask of a convolution behind a pool behind a concatenation needs rTasks of the pool that read each part; an
    rTask of the pool reads one.

    Parameters
    ----------
    first, middle : int
        The operators that it depends on; the second depends on the first.
    some_us : tuple of float
        For each kernel of the first when an rTask of the second can begin that needs any of it, whatever its kernel;
        counted from the first start of these.
    """

    first: int
    middle: int
    some_us: tuple[float, ...]


def critical_path_us(readings: "Readings") -> float:
    """A lower bound on the end of every plan, its launch not counted.

    Parameters
    ----------
    readings : Readings
        Of the problem.

    Returns
    -------
    float

    Notes
    -----
    For each operator and each of its kernels follow bounds on its first start and its last end from those of the
    operators that it depends on, each with the kernel for which that is earliest.
    """
    problem = readings.problem
    starts: list[list[float]] = []
    ends: list[list[float]] = []
    for operator in range(len(problem.graph.operators)):
        pairs = [readings.between(before, operator) for before in problem.predecessors[operator]]
        bridged_us = max((_bridged_us(problem, bridge, starts) for bridge in readings.bridges(operator)), default=0.0)
        bounds = [
            _bounds(problem, operator, kernel, [found[r] for found in pairs], starts, ends, bridged_us)
            for r, kernel in enumerate(problem.candidates(operator))
        ]
        starts.append([start_us for start_us, _ in bounds])
        ends.append([end_us for _, end_us in bounds])
    return max(map(min, ends), default=0.0)


def _bounds(
    problem: Problem,
    operator: int,
    kernel: RKernel,
    readings: Sequence[Sequence[Reading]],
    starts: Sequence[Sequence[float]],
    ends: Sequence[Sequence[float]],
    bridged_us: float,
) -> tuple[float, float]:
    """First start and last end of an operator with one kernel, given those of all before it.

    `readings` has for each predecessor one entry for each of its kernels; `bridged_us` bounds the start, too.
    """
    first, last, all_covered = bridged_us, 0.0, 0.0
    for before, found in zip(problem.predecessors[operator], readings, strict=True):
        bounds = list(zip(found, starts[before], ends[before], strict=True))
        first = max(first, min(max(_after(start, r.least_us), end if r.least_all else 0.0) for r, start, end in bounds))
        last = max(last, min(max(_after(start, r.most_us), end if r.most_all else 0.0) for r, start, end in bounds))
        all_covered = max(all_covered, min(end if r.covers else 0.0 for r, _, end in bounds))
    rtask_us = problem.cost.rtask_us(kernel)
    return first, max(first + problem.cost.operator_us(kernel, problem.veus), last + rtask_us, all_covered + rtask_us)


def _bridged_us(problem: Problem, bridge: Bridge, starts: Sequence[Sequence[float]]) -> float:
    """When at best an operator behind a bridge can start, given the first starts of all before it."""
    begin_us = min(start + some for start, some in zip(starts[bridge.first], bridge.some_us, strict=True))
    return begin_us + min(map(problem.cost.rtask_us, problem.candidates(bridge.middle)))


def _after(start_us: float, needed_us: float | None) -> float:
    return 0.0 if needed_us is None else start_us + needed_us


class Readings:
    """How the operators of a problem depend on each other; remembers it by functions, for blocks of a network repeat.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        cost = problem.cost
        self._gap_us = min(p for p in (cost.signal_us, cost.barrier_us, cost.launch_us) if p is not None)
        self._found: dict[tuple[str, str, tuple[tuple[int, int, int], ...]], list[list[Reading]]] = {}

    def between(self, before: int, operator: int) -> Sequence[Sequence[Reading]]:
        """How an operator depends on one before it: for each of its kernels and each kernel of the other."""
        graph = self.problem.graph
        writer, reader = graph.operators[before], graph.operators[operator]
        read, written = ([*map(graph.extent, buffers)] for buffers in (reader.inputs, writer.outputs))
        apart = tuple(
            (i, n, w.start - r.start) for i, r in enumerate(read) for n, w in enumerate(written) if r.overlaps(w)
        )
        key = writer.function, reader.function, apart
        if key not in self._found:
            self._found[key] = [
                [self._reading(before, w, operator, r) for w in self.problem.candidates(before)]
                for r in self.problem.candidates(operator)
            ]
        return self._found[key]

    def bridges(self, operator: int) -> Iterator[Bridge]:
        """All bridges to an operator."""
        for middle in self.problem.predecessors[operator]:
            for first in self.problem.predecessors[middle]:
                found = self.between(first, middle)
                if all(reading.least_us is not None for row in found for reading in row):
                    continue  # each rTask of the middle one needs the first: that is no bridge, but two steps
                if self._each_needs(operator, middle, found):
                    columns = zip(*found, strict=True)
                    some = [[r.some_us for r in column if r.some_us is not None] for column in columns]
                    yield Bridge(first, middle, tuple(map(min, some)))

    def _each_needs(self, operator: int, middle: int, found: Sequence[Sequence[Reading]]) -> bool:
        """Whether each rTask needs one of the middle operator that needs another, of which `found` is the reading."""
        for column, row in zip(zip(*self.between(middle, operator), strict=True), found, strict=True):
            for needing in {_needing(reading.wanted) for reading in row}:
                if not all(bits & needing for reading in column for bits in set(reading.wanted)):
                    return False
        return True

    def _reading(self, before: int, writes: RKernel, operator: int, reads: RKernel) -> Reading:
        everything = (1 << writes.num_rtasks) - 1
        wanted = needs(self.problem.graph, before, writes, operator, reads) or (everything,) * reads.num_rtasks
        counts = [bits.bit_count() for bits in wanted]
        least, most = min(counts), max(counts)
        rtask_us, veus = self.problem.cost.rtask_us(writes), self.problem.veus

        def known(count: int) -> float | None:
            return known_us(rtask_us, count, veus, self._gap_us) if count else None

        return Reading(
            known(least),
            known(most),
            least == writes.num_rtasks,
            most == writes.num_rtasks,
            union(wanted, range(len(wanted))) == everything,
            known(min((count for count in counts if count), default=0)),
            wanted,
        )


def _needing(wanted: Needs) -> int:
    """Which rTasks need any, as bits."""
    return sum(1 << n for n, bits in enumerate(wanted) if bits)


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
