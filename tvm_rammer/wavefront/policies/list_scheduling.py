"""List scheduling by critical path, after HEFT (Topcuoglu et al., TPDS 2002), down to rTasks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice, product

from ...ir import RKernel
from ..plan.append_operator import append_operator
from ..plan.builder import ProgramBuilder
from ..plan.select_rkernels import fastest
from ..problem import Problem
from .waves import waves

_WORK_WEIGHTS = (0.0, 1.0, 4.0)
"""How much an operator's work, evenly shared by all vEUs, counts beside its end under full contention for vEUs."""

MOST_COMPARED = 400
"""Operators that are planned to compare weights and orders: of a larger graph those with the longest paths."""


def list_scheduling(problem: Problem) -> list[ProgramBuilder]:
    """Plan operator after operator, the one with the longest path to the end first.

    Each takes the kernel with the least weighted sum of its end and its work. Several weights are tried, each in
    the strict order of ranks and in the order of possible starts, and the fastest plan is taken. A graph of more than
    `MOST_COMPARED` operators is planned once, as is best for so many of them.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    ranks = upward_ranks(problem)
    contention = _contention(problem)
    # A chain has no contention: all its weights are the same.
    weights = dict.fromkeys(tuple(weight * c for c in contention) for weight in _WORK_WEIGHTS)
    first = list(islice(_by_rank(ranks), MOST_COMPARED))
    plans = [
        (_plan(problem, ranks, work_weights, by_start, first), work_weights, by_start)
        for work_weights, by_start in product(weights, (False, True))
    ]
    best, work_weights, by_start = min(plans, key=lambda plan: plan[0].time_us)
    if len(first) < len(ranks):
        best = _plan(problem, ranks, work_weights, by_start, range(len(ranks)))
    return [best] if best.kernels else []


def upward_ranks(problem: Problem) -> list[float]:
    """For each operator the length of the longest path from its start to the end: fastest kernels, a signal an edge."""
    ranks = [0.0] * len(problem.graph.operators)
    for operator in reversed(range(len(ranks))):
        ranks[operator] += problem.cost.operator_us(fastest(problem, operator), problem.veus)
        for before in problem.predecessors[operator]:
            ranks[before] = max(ranks[before], ranks[operator] + problem.cost.signal_us)
    return ranks


def _contention(problem: Problem) -> list[float]:
    """For each operator the part of its wave that is others: 0 for one that has the vDevice for itself."""
    contention = [0.0] * len(problem.graph.operators)
    for wave in waves(problem.predecessors):
        for operator in wave:
            contention[operator] = 1.0 - 1.0 / len(wave)
    return contention


def _plan(
    problem: Problem, ranks: Sequence[float], work_weights: Sequence[float], by_start: bool, operators: Collection[int]
) -> ProgramBuilder:
    """Plan some operators, and with them all that they depend on."""
    builder = ProgramBuilder(problem)
    since_barrier: set[int] = set()
    end_us: dict[int, float] = {}
    order = _by_start(problem, ranks, builder, end_us, operators) if by_start else _by_rank(ranks)
    for operator in islice(order, len(operators)):
        if problem.sync == "global" and since_barrier.intersection(problem.predecessors[operator]):
            builder.barrier()
            since_barrier.clear()
        end_us[operator] = append_cheapest(operator, builder, work_weights[operator])
        since_barrier.add(operator)
    return builder


def _by_rank(ranks: Sequence[float]) -> Iterator[int]:
    """Longest path first; an operator never comes before one that it depends on."""
    yield from sorted(range(len(ranks)), key=lambda o: (-ranks[o], o))


def _by_start(
    problem: Problem,
    ranks: Sequence[float],
    builder: ProgramBuilder,
    end_us: Mapping[int, float],
    operators: Collection[int],
) -> Iterator[int]:
    """Of the operators that can start when a vEU is next free the one with the longest path, else the next to start.

    The caller appends each operator to `builder`, and puts its end into `end_us`, before it takes the next.
    """
    missing = [len(before) for before in problem.predecessors]
    successors: list[list[int]] = [[] for _ in ranks]
    for operator in sorted(operators):
        for p in problem.predecessors[operator]:
            successors[p].append(operator)
    later = [(0.0, o) for o in operators if not missing[o]]
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
        for successor in successors[operator]:
            missing[successor] -= 1
            if not missing[successor]:
                heappush(later, (max(end_us[p] for p in problem.predecessors[successor]), successor))


def append_cheapest(operator: int, builder: ProgramBuilder, work_weight: float) -> float:
    """Append an operator with the kernel of least end + `work_weight` x work / number of vEUs.

    Returns
    -------
    float
        When the last of its rTasks ends.
    """
    problem, cost = builder.problem, builder.problem.cost
    free_us = min(builder.ready_us)

    def of_work(kernel: RKernel) -> float:
        return work_weight * cost.work_us(kernel) / problem.veus

    def at_least(kernel: RKernel) -> float:
        """No end is earlier than that of the operator alone, on vEUs that are free when the first of them is."""
        return (free_us + cost.operator_us(kernel, problem.veus)) * (1 - 1e-9) + of_work(kernel)

    mark, tried = builder.mark(), None
    best: tuple[float, float, float, int] | None = None
    candidates = problem.candidates(operator)
    for least, n in sorted((at_least(kernel), n) for n, kernel in enumerate(candidates)):
        if best and least > best[0]:
            break
        if tried is not None:
            builder.rollback(mark)
        end_us, tried = _append(operator, candidates[n], builder), n
        found = (end_us + of_work(candidates[n]), cost.work_us(candidates[n]), end_us, n)
        best = min(best, found) if best else found
    assert best is not None
    if tried != best[3]:
        builder.rollback(mark)
        _append(operator, candidates[best[3]], builder)
    return best[2]


def _append(operator: int, kernel: RKernel, builder: ProgramBuilder) -> float:
    before = list(builder.ready_us)
    append_operator(operator, kernel, builder)
    changed = (after for was, after in zip(before, builder.ready_us, strict=True) if after != was)
    return max(changed, default=max(before))
