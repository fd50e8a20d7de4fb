"""List scheduling by critical path, after HEFT (Topcuoglu et al., TPDS 2002), down to rTasks."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice, product

from ...ir import RKernel
from ..plan.append_operator import append_operator
from ..plan.builder import Mark, ProgramBuilder
from ..plan.select_rkernels import fastest
from ..problem import Problem
from .improve_stage import improve_stage
from .replay import Replay, Step
from .stages import stages
from .waves import waves

_WORK_WEIGHTS = (0.0, 1.0, 2.0, 4.0, 8.0)
"""How much an operator's work, evenly shared by all vEUs, counts beside its end under full contention for vEUs."""

MOST_COMPARED = 400
"""Operators that are planned to compare weights and orders: of a larger stage those with the longest paths."""

MOST_IMPROVED = 40
"""Operators of a stage that are changed one by one: each change plans what follows in the stage again."""


def list_scheduling(problem: Problem) -> list[ProgramBuilder]:
    """Plan operator after operator, the one with the longest path to the end first.

    Each takes the kernel with the least weighted sum of its end and its work. Several weights are tried, each in
    the strict order of ranks and in the order of possible starts, and the way that ends first is taken: for each stage
    by itself, where the graph comes together. Of a stage of more than `MOST_COMPARED` operators so many are planned in
    all ways, and the whole as is best for them; one of at most `MOST_IMPROVED` is improved afterwards.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    planner = _Planner(problem)
    for stage in stages(problem.predecessors, _by_rank(planner.ranks)):
        planner.append(stage)
    return [planner.builder] if planner.builder.kernels else []


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


def _by_rank(ranks: Sequence[float]) -> list[int]:
    """Longest path first; an operator never comes before one that it depends on."""
    return sorted(range(len(ranks)), key=lambda o: (-ranks[o], o))


class _Planner:
    """A plan that grows stage by stage."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.builder = ProgramBuilder(problem)
        self.ranks = upward_ranks(problem)
        self._contention = _contention(problem)
        self._since_barrier: set[int] = set()

    def append(self, stage: Sequence[int]) -> None:
        """Plan a stage, given by rank, in the way that ends first."""
        mark, since_barrier = self.builder.mark(), set(self._since_barrier)
        first = stage[:MOST_COMPARED]

        def planned(operators: Sequence[int], weight: float, by_start: bool) -> float:
            self.builder.rollback(mark)
            self._since_barrier = set(since_barrier)
            self._append_in_order(operators, weight, by_start)
            return self.builder.time_us

        ways = self._ways(stage)
        best = ways[0] if len(ways) == 1 else min(ways, key=lambda way: planned(first, *way))
        planned(stage, *best)
        if self.problem.sync == "auto" and 1 < len(stage) <= MOST_IMPROVED:
            self._improve(mark)

    def _ways(self, stage: Sequence[int]) -> list[tuple[float, bool]]:
        """Weights and orders that may differ; a chain has no contention, so all its weights are the same."""
        contended = any(self._contention[o] for o in stage)
        return list(product(_WORK_WEIGHTS if contended else (0.0,), (False, True) if len(stage) > 1 else (False,)))

    def _append_in_order(self, stage: Sequence[int], weight: float, by_start: bool) -> None:
        for operator in self._by_start(stage) if by_start else stage:
            if self.problem.sync == "global" and self._since_barrier.intersection(self.problem.predecessors[operator]):
                self.builder.barrier()
                self._since_barrier.clear()
            append_cheapest(operator, self.builder, weight * self._contention[operator])
            self._since_barrier.add(operator)

    def _improve(self, mark: Mark) -> None:
        steps = [Step(o, kernel) for o, kernel in islice(self.builder.kernels.items(), mark.operators, None)]
        self.builder.rollback(mark)
        improve_stage(Replay(self.builder), steps)

    def _by_start(self, stage: Sequence[int]) -> Iterator[int]:
        """Of the operators that can start when a vEU is next free the one with the longest path, else the next one.

        The caller appends each operator before it takes the next.
        """
        builder, predecessors = self.builder, self.problem.predecessors
        successors: dict[int, list[int]] = {o: [] for o in stage}
        missing = dict.fromkeys(stage, 0)
        for operator in sorted(stage):
            for p in predecessors[operator]:
                if p in successors:
                    successors[p].append(operator)
                    missing[operator] += 1

        def possible_us(operator: int) -> float:
            return max((builder.end_us(p) for p in predecessors[operator]), default=0.0)

        later = [(possible_us(o), o) for o in stage if not missing[o]]
        heapify(later)
        now: list[tuple[float, int]] = []
        while later or now:
            free_us = min(builder.ready_us)
            if not now:
                free_us = max(free_us, later[0][0])
            while later and later[0][0] <= free_us:
                _, operator = heappop(later)
                heappush(now, (-self.ranks[operator], operator))
            _, operator = heappop(now)
            yield operator
            for successor in successors[operator]:
                missing[successor] -= 1
                if not missing[successor]:
                    heappush(later, (possible_us(successor), successor))


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
