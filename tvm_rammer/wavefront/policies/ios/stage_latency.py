"""The predicted time of a stage of IOS."""

from collections.abc import Sequence

from ...plan.select_rkernels import wave_us
from ...problem import Problem
from ..waves import waves


class StageLatency:
    """Predicts the time of a stage; equal stages, as in repeated blocks of a network, are planned once.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    planned : int
        How many stages had to be planned.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        cost = problem.cost
        end_us = cost.barrier_end_us(0.0) if problem.sync == "global" else cost.signal_us
        self._end_us = end_us if problem.veus > 1 else 0.0
        self._latencies: dict[tuple[GroupKey, ...], float] = {}
        self._bounds: dict[str, tuple[float, float]] = {}

    @property
    def planned(self) -> int:
        return len(self._latencies)

    def bound(self, stage: Sequence[int]) -> float:
        """A lower bound of a stage's time, without planning it: the longest operator, and all work shared evenly."""
        longest = work = 0.0
        for operator in stage:
            alone_us, work_us = self._least(self.problem.graph.operators[operator].function, operator)
            longest, work = max(longest, alone_us), work + work_us
        return max(longest, work / self.problem.veus) + self._end_us

    def _least(self, function: str, operator: int) -> tuple[float, float]:
        if function not in self._bounds:
            cost, kernels = self.problem.cost, self.problem.candidates(operator)
            alone_us = min(cost.operator_us(k, self.problem.veus) for k in kernels)
            self._bounds[function] = alone_us, min(cost.work_us(k) for k in kernels)
        return self._bounds[function]

    def __call__(self, stage: Sequence[int]) -> float:
        """Time in microseconds from all vEUs being free to the next stage's start."""
        groups = groups_of(stage, self.problem)
        key = tuple(_group_key(group, self.problem) for group in groups)
        if key not in self._latencies:
            self._latencies[key] = wave_us(in_order(groups, self.problem), self.problem) + self._end_us
        return self._latencies[key]


GroupKey = tuple[tuple[str, tuple[int, ...]], ...]
"""What equal groups have in common: for each operator its function, and its predecessors within the group."""


def groups_of(stage: Sequence[int], problem: Problem) -> list[list[int]]:
    """The parts of a stage that dependences connect; equal stages list equal groups in the same order."""
    group_of: dict[int, list[int]] = {}
    for operator in stage:
        group = [operator]
        for before in problem.predecessors[operator]:
            if before in group_of and group_of[before] is not group:
                group = sorted([*group_of[before], *group])
                group_of.update((o, group) for o in group)
        group_of[operator] = group
    groups = {id(group): group for group in group_of.values()}
    return sorted(groups.values(), key=lambda group: (_group_key(group, problem), group))


def _group_key(group: Sequence[int], problem: Problem) -> GroupKey:
    position = {o: n for n, o in enumerate(group)}
    return tuple(
        (problem.graph.operators[o].function, tuple(position[p] for p in problem.predecessors[o] if p in position))
        for o in group
    )


def in_order(groups: Sequence[Sequence[int]], problem: Problem) -> list[int]:
    """Order the operators of groups wave after wave, so that no group takes all vEUs before another starts."""
    members = [o for group in groups for o in group]
    position = {o: n for n, o in enumerate(members)}
    inside = [[position[p] for p in problem.predecessors[o] if p in position] for o in members]
    return [members[n] for wave in waves(inside) for n in wave]
