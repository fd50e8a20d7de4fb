"""List scheduling by critical path, after HEFT (Topcuoglu et al., TPDS 2002), down to rTasks."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ...ir import RKernel
from ..plan.append_operator import place
from ..plan.builder import ProgramBuilder
from ..plan.select_rkernels import fastest
from ..problem import Problem
from .waves import waves

_THRIFT = (0.0, 1.0, 4.0)
"""What an operator's even share of work counts beside its end, at most: much is right where many wait for vEUs."""


def list_scheduling(problem: Problem) -> list[ProgramBuilder]:
    """Plan operator after operator, whoever has the longest way to the end first.

    Each takes the kernel for which its end and its share of the vDevice's time are least together. Several
    weights of that share are planned, each in the strict order of ranks and in the order of starts, and the fastest
    plan is taken.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    ranks = upward_ranks(problem)
    crowds = _crowds(problem)
    # A chain has no crowds: all its weights are the same.
    weights = dict.fromkeys(tuple(thrift * crowd for crowd in crowds) for thrift in _THRIFT)
    plans = [_plan(problem, ranks, thrift, early) for thrift in weights for early in (False, True)]
    best = min(plans, key=lambda builder: builder.time_us)
    return [best] if best.kernels else []


def upward_ranks(problem: Problem) -> list[float]:
    """For each operator the time from its start to the end, on the longest way: fastest kernels and a signal each."""
    ranks = [0.0] * len(problem.graph.operators)
    for operator in reversed(range(len(ranks))):
        ranks[operator] += problem.cost.operator_us(fastest(problem, operator), problem.veus)
        for before in problem.predecessors[operator]:
            ranks[before] = max(ranks[before], ranks[operator] + problem.cost.signal_us)
    return ranks


def _crowds(problem: Problem) -> list[float]:
    """For each operator the part that others have in its wave: 0 for one that has the vDevice for itself."""
    crowds = [0.0] * len(problem.graph.operators)
    for wave in waves(problem.predecessors):
        for operator in wave:
            crowds[operator] = 1.0 - 1.0 / len(wave)
    return crowds


def _plan(problem: Problem, ranks: Sequence[float], thrift: Sequence[float], early: bool) -> ProgramBuilder:
    builder = ProgramBuilder(problem)
    since_barrier: set[int] = set()
    end_us: dict[int, float] = {}
    order = _by_start(problem, ranks, builder, end_us) if early else _by_rank(ranks)
    for operator in order:
        if problem.sync == "global" and since_barrier.intersection(problem.predecessors[operator]):
            builder.barrier()
            since_barrier.clear()
        end_us[operator] = place_cheapest(operator, builder, thrift[operator])
        since_barrier.add(operator)
    return builder


def _by_rank(ranks: Sequence[float]) -> Iterator[int]:
    """Longest way first; an operator never comes before one that it depends on."""
    yield from sorted(range(len(ranks)), key=lambda o: (-ranks[o], o))


def _by_start(
    problem: Problem, ranks: Sequence[float], builder: ProgramBuilder, end_us: Mapping[int, float]
) -> Iterator[int]:
    """Of the operators that can start when a vEU is next free the one with the longest way, else the next to start.

    Who asks for the next operator has placed the one before, in `builder`, and put its end into `end_us`.
    """
    missing = [len(before) for before in problem.predecessors]
    readers: list[list[int]] = [[] for _ in ranks]
    for operator, before in enumerate(problem.predecessors):
        for p in before:
            readers[p].append(operator)
    later = [(0.0, o) for o, n in enumerate(missing) if not n]
    heapify(later)
    now: list[tuple[float, int]] = []
    while later or now:
        free_us = min(builder.ready_us)
        if not now:
            free_us = max(free_us, later[0][0])
        while later and later[0][0] <= free_us:
            _, operator = heappop(later)
            heappush(now, (-ranks[operator], operator))
        _, operator = heappop(now)
        yield operator
        for reader in readers[operator]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(later, (max(end_us[p] for p in problem.predecessors[reader]), reader))


def place_cheapest(operator: int, builder: ProgramBuilder, thrift: float) -> float:
    """Append an operator with the kernel for which its end, and `thrift` times its work on all vEUs, are least.

    Returns
    -------
    float
        When the last of its rTasks ends.
    """
    problem = builder.problem
    candidates = problem.candidates(operator)
    mark = builder.mark()
    best: tuple[float, float, float, int] | None = None
    for n, kernel in enumerate(candidates):
        work_us = problem.cost.rtask_us(kernel) * kernel.num_rtasks
        end_us = _place(operator, kernel, builder)
        found = (end_us + thrift * work_us / problem.veus, work_us, end_us, n)
        best = min(best, found) if best else found
        if len(candidates) > 1:
            builder.rollback(mark)
    assert best is not None
    if len(candidates) > 1:
        _place(operator, candidates[best[3]], builder)
    return best[2]


def _place(operator: int, kernel: RKernel, builder: ProgramBuilder) -> float:
    before = list(builder.ready_us)
    place(operator, kernel, builder)
    changed = (after for was, after in zip(before, builder.ready_us, strict=True) if after != was)
    return max(changed, default=max(before))
