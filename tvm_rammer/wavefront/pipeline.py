"""Which operators of a loop hand something on from step to step, and vEUs of their own for those that follow.

What forms a cycle from step to step, as a recurrent layer does, has to be done once a step, one operator after another.
Another cycle that reads what it makes may be at an earlier step meanwhile, if it runs elsewhere: so recurrent layers
that are one loop work side by side, each a step or more behind the one before it (the wavefront of Rammer, 5).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from ..ir import RGraph, RKernel
from .cost import CostModel


def pipeline_stages(graph: RGraph, predecessors: Sequence[Sequence[int]]) -> list[int]:
    """Number the cycles of a loop along its paths.

    Parameters
    ----------
    graph : RGraph
        Of several steps.
    predecessors : sequence of sequence of int
        `graph.predecessors()`.

    Returns
    -------
    list of int
        For each operator how many cycles are before it on the longest path to it; what follows the last cycle has the
        number of that.
    """
    readers = _readers(graph, predecessors)
    cycles = [bits & _bits(p for p, others in enumerate(readers) if others >> o & 1) for o, bits in enumerate(readers)]
    stages: list[int] = []
    for o, before in enumerate(predecessors):
        passed = (stages[p] + (cycles[p] != 0 and not cycles[p] >> o & 1) for p in before)
        stages.append(max(passed, default=0))
    last = max((stage for stage, cycle in zip(stages, cycles, strict=True) if cycle), default=0)
    return [min(stage, last) for stage in stages]


def _readers(graph: RGraph, predecessors: Sequence[Sequence[int]]) -> list[int]:
    """For each operator, as bits, all that depend on its result, in the same step or in a later one."""
    readers = [0] * len(graph.operators)
    for o, before in enumerate(predecessors):
        for p in (*before, *_writers_before(graph, o)):
            readers[p] |= 1 << o
    while True:
        further = [bits | _union(readers, bits) for bits in readers]
        if further == readers:
            return readers
        readers = further


def _writers_before(graph: RGraph, reader: int) -> Iterator[int]:
    """The operators that write, in an earlier step, what an operator reads."""
    places = [graph.buffers[b].place for b in graph.operators[reader].inputs]
    for o, op in enumerate(graph.operators):
        for written in (graph.buffers[b].place for b in op.outputs):
            for place in places:
                if written is not None and place is not None and place.stride and place.base == written.base:
                    steps = written.ahead - place.ahead
                    if steps % place.phases if place.phases else steps > 0:
                        yield o


def _bits(operators: Iterable[int]) -> int:
    return sum(1 << o for o in operators)


def _union(readers: Sequence[int], bits: int) -> int:
    found = 0
    for o, others in enumerate(readers):
        if bits >> o & 1:
            found |= others
    return found


def lanes_of_stages(
    graph: RGraph, stages: Sequence[int], kernels: Mapping[str, Sequence[RKernel]], cost: CostModel, veus: int
) -> tuple[range, ...]:
    """Give each stage vEUs of its own, by its part of the work; neighbouring stages share where vEUs are fewer.

    Parameters
    ----------
    graph : RGraph
    stages : sequence of int
        Of each operator (`pipeline_stages`).
    kernels : mapping of str to sequence of RKernel
    cost : CostModel
    veus : int

    Returns
    -------
    tuple of range
        For each operator the vEUs that may run it.
    """
    work = [0.0] * (max(stages) + 1)
    for op, stage in zip(graph.operators, stages, strict=True):
        work[stage] += min(map(cost.work_us, kernels[op.function]))
    groups = _groups(work, min(len(work), veus))
    works = [sum(work[group.start : group.stop]) for group in groups]
    counts = [1] * len(groups)
    for _ in range(veus - len(groups)):
        counts[max(range(len(groups)), key=lambda g: works[g] / counts[g])] += 1
    lanes: dict[int, range] = {}
    for group, end, count in zip(groups, accumulate(counts), counts, strict=True):
        lanes |= dict.fromkeys(group, range(end - count, end))
    return tuple(lanes[stage] for stage in stages)


def _groups(work: Sequence[float], count: int) -> list[range]:
    """Cut stages into so many groups of neighbours, of which the one with the most work has as little as possible."""
    # Of the first stages, by their number: the most work of a group, and where the groups end.
    best: dict[int, tuple[float, tuple[int, ...]]] = {end: (sum(work[:end]), (end,)) for end in range(1, len(work) + 1)}
    for groups in range(2, count + 1):
        best = {
            end: min((max(best[cut][0], sum(work[cut:end])), (*best[cut][1], end)) for cut in range(groups - 1, end))
            for end in range(groups, len(work) + 1)
        }
    return [range(begin, end) for begin, end in pairwise((0, *best[len(work)][1]))]
