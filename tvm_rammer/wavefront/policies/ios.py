"""The inter-operator scheduler's dynamic program over stages (IOS, MLSys 2021, Algorithm 1)."""

from collections.abc import Iterator, Sequence

from ..blocks import blocks
from ..builder import ProgramBuilder
from ..endings import count_states, endings
from ..problem import Problem
from ..select_rkernels import place_selected
from ..waves import waves

_BLOCK = 32
"""Operators of a block, where the graph can be cut."""

_MOST_STATES = 300
"""A block with more sets of operators that may be done is too wide: it is halved, wave from wave."""

_MOST_PLANS = 30
"""So is one that needs more plans of stages for each of its operators."""

_SMALL = 12
"""In blocks of more operators only the stage that looks best by its bound is planned for each state."""


def ios(problem: Problem) -> list[ProgramBuilder]:
    """Plan stage after stage: those for which the sum of the stages' times is least.

    A stage is a set of groups, each a few operators that depend on each other; groups run side by side. Unlike the
    paper's, whose stages are measured, a stage's time is predicted by planning it alone, and operators of a stage are
    never merged into one. Stages end with a barrier or with waits, as `sync` says.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    latency = StageLatency(problem)
    builder = ProgramBuilder(problem)
    for block in blocks(problem.predecessors, _BLOCK):
        for stage in _stages(_in_order([block], problem), latency):
            place_stage(stage, builder)
    return [builder] if builder.kernels else []


def place_stage(stage: Sequence[int], builder: ProgramBuilder) -> None:
    """Continue a program by a stage."""
    problem = builder.problem
    if problem.sync == "global":
        builder.barrier()
    place_selected(_in_order(_groups(stage, problem), problem), builder)


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
        groups = _groups(stage, self.problem)
        key = tuple(_group_key(group, self.problem) for group in groups)
        if key not in self._known:
            alone = ProgramBuilder(self.problem)
            place_selected(_in_order(groups, self.problem), alone)
            self._known[key] = max(alone.ready_us) + self._end_us
        return self._known[key]


GroupKey = tuple[tuple[str, tuple[int, ...]], ...]
"""What equal groups have in common: for each operator its function, and whom in the group it depends on."""


def _groups(stage: Sequence[int], problem: Problem) -> list[list[int]]:
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


def _in_order(groups: Sequence[Sequence[int]], problem: Problem) -> list[int]:
    """Wave after wave: no group keeps the vEUs from the others by coming first as a whole."""
    members = [o for group in groups for o in group]
    position = {o: n for n, o in enumerate(members)}
    inside = [[position[p] for p in problem.predecessors[o] if p in position] for o in members]
    return [members[n] for wave in waves(inside) for n in wave]


def _stages(block: Sequence[int], latency: StageLatency) -> Iterator[tuple[int, ...]]:
    """The best stages of a block, or of its halves where it is too wide."""
    found = _Search(block, latency).stages()
    if found is not None:
        yield from found
        return
    half = len(block) // 2
    yield from _stages(block[:half], latency)
    yield from _stages(block[half:], latency)


class _TooManyPlans(Exception):
    """The search must be given up."""


class _Search:
    """The dynamic program of one block; sets of its operators are bits."""

    def __init__(self, block: Sequence[int], latency: StageLatency) -> None:
        self.block, self.latency = block, latency
        self.successors = [0] * len(block)
        position = {o: n for n, o in enumerate(block)}
        for n, operator in enumerate(block):
            for p in latency.problem.predecessors[operator]:
                if p in position:
                    self.successors[position[p]] |= 1 << n
        self.most_planned = latency.planned + _MOST_PLANS * len(block)
        self.best: dict[int, tuple[float, int]] = {0: (0.0, 0)}
        self.times: dict[int, float] = {}
        self.bounds: dict[int, float] = {}

    def stages(self) -> list[tuple[int, ...]] | None:
        """Stages in order; None if the block is too wide. A block of one operator never is."""
        state = (1 << len(self.block)) - 1
        if not count_states(self.successors, _MOST_STATES):
            return None
        try:
            self._solve(state)
        except _TooManyPlans:
            return None
        found = []
        while state:
            ending = self.best[state][1]
            found.append(self._members(ending))
            state &= ~ending
        return found[::-1]

    def _members(self, ending: int) -> tuple[int, ...]:
        return tuple(o for n, o in enumerate(self.block) if ending >> n & 1)

    def _solve(self, state: int) -> float:
        """dp[S] = min over endings S' of dp[S - S'] + latency(S')."""
        if state in self.best:
            return self.best[state][0]
        options = self.latency.problem.options
        # The most promising first: then most stages need no plan, since even their bound is too long.
        promising = sorted(
            (self._solve(state & ~ending) + self._bound(ending), ending)
            for ending in endings(state, self.successors, options.r, options.s)
        )
        best = float("inf"), 0
        for least_us, ending in promising if len(self.block) <= _SMALL else promising[:1]:
            if least_us >= best[0]:
                break
            best = min(best, (self._solve(state & ~ending) + self._time(ending), ending))
        self.best[state] = best
        return best[0]

    def _bound(self, ending: int) -> float:
        if ending not in self.bounds:
            self.bounds[ending] = self.latency.bound(self._members(ending))
        return self.times.get(ending, self.bounds[ending])

    def _time(self, ending: int) -> float:
        if ending not in self.times:
            self.times[ending] = self.latency(self._members(ending))
            if self.latency.planned > self.most_planned:
                raise _TooManyPlans
        return self.times[ending]
