"""What a stage of IOS costs, predicted."""

from collections.abc import Sequence

from ...plan.select_rkernels import selected_us
from ...problem import Problem
from ..waves import waves


class StageLatency:
    """Predicts what a stage costs; equal stages, as in repeated blocks of a network, are planned once.

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
        end_us = cost.released_us(0.0) if problem.sync == "global" else cost.signal_us
        self._end_us = end_us if problem.veus > 1 else 0.0
        self._known: dict[tuple[GroupKey, ...], float] = {}
        self._bounds: dict[str, tuple[float, float]] = {}

    @property
    def planned(self) -> int:
        return len(self._known)

    def bound(self, stage: Sequence[int]) -> float:
        """What no plan of a stage can beat, without planning it: the longest operator, and all work shared evenly."""
        longest = work = 0.0
        for operator in stage:
            alone_us, work_us = self._least(self.problem.graph.operators[operator].function, operator)
            longest, work = max(longest, alone_us), work + work_us
        return max(longest, work / self.problem.veus) + self._end_us

    def _least(self, function: str, operator: int) -> tuple[float, float]:
        if function not in self._bounds:
            cost, made = self.problem.cost, self.problem.candidates(operator)
            alone_us = min(cost.operator_us(k, self.problem.veus) for k in made)
            self._bounds[function] = alone_us, min(cost.rtask_us(k) * k.num_rtasks for k in made)
        return self._bounds[function]

    def __call__(self, stage: Sequence[int]) -> float:
        """Time in microseconds from all vEUs being free to the next stage's start."""
        groups = groups_of(stage, self.problem)
        key = tuple(_group_key(group, self.problem) for group in groups)
        if key not in self._known:
            self._known[key] = selected_us(in_order(groups, self.problem), self.problem) + self._end_us
        return self._known[key]


GroupKey = tuple[tuple[str, tuple[int, ...]], ...]
"""What equal groups have in common: for each operator its function, and whom in the group it depends on."""


def groups_of(stage: Sequence[int], problem: Problem) -> list[list[int]]:
    """What dependences hold together in a stage; equal stages list equal groups in the same order."""
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
    """Wave after wave: no group keeps the vEUs from the others by coming first as a whole."""
    members = [o for group in groups for o in group]
    position = {o: n for n, o in enumerate(members)}
    inside = [[position[p] for p in problem.predecessors[o] if p in position] for o in members]
    return [members[n] for wave in waves(inside) for n in wave]
