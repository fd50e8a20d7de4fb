"""The inter-operator scheduler's dynamic program over stages (IOS, MLSys 2021, Algorithm 1)."""

from collections.abc import Sequence

from ...plan.builder import ProgramBuilder
from ...plan.select_rkernels import append_wave
from ...problem import Problem
from .blocks import blocks
from .endings import count_states
from .stage_graph import StageGraph
from .stage_latency import StageLatency, groups_of, in_order

_BLOCK = 32
"""Operators of a block, where the graph can be cut."""

_MOST_STATES = 300
"""A block with more states of the dynamic program is too wide: it is halved, between waves."""

_SMALL = 8
"""Blocks of so few operators are searched without limits to groups and stages, unless the options set some."""

_R, _S = 3, 8
"""The paper's limits for all other blocks."""

_PLANS, _LEAST_PLANS = 4, 64
"""How many stages of a block may be planned: so many for each operator, and this many in any case."""

_LISTS, _LISTS_SMALL = 4, 100
"""So many of the best lists of stages, of a block or of a graph that is one small block, are planned in full and
compared: the sum of the stages' times is only an estimate."""


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
        _append_block(builder, in_order([block], problem), latency)
    return [builder] if builder.kernels else []


def _append_block(builder: ProgramBuilder, block: Sequence[int], latency: StageLatency) -> None:
    """Append the best stages of a block to a program, or of its halves where it is too wide."""
    found = _best_stages(block, latency)
    if not found:
        half = len(block) // 2
        _append_block(builder, block[:half], latency)
        _append_block(builder, block[half:], latency)
        return
    mark, times = builder.mark(), []
    for stages in found if len(found) > 1 else ():
        _append_stages(stages, builder)
        times.append(builder.time_us)
        builder.rollback(mark)
    _append_stages(found[times.index(min(times))] if times else found[0], builder)


def _append_stages(stages: Sequence[Sequence[int]], builder: ProgramBuilder) -> None:
    for stage in stages:
        append_stage(stage, builder)


def append_stage(stage: Sequence[int], builder: ProgramBuilder) -> None:
    """Append a stage to a program."""
    problem = builder.problem
    if problem.sync == "global":
        builder.barrier()
    append_wave(in_order(groups_of(stage, problem), problem), builder)


def _best_stages(block: Sequence[int], latency: StageLatency) -> list[list[tuple[int, ...]]]:
    """The lists of stages of a block with the least sums of times; none if it is too wide, as one operator never is."""
    problem = latency.problem
    if len(block) >= _MOST_STATES:
        return []
    position = {o: n for n, o in enumerate(block)}
    successors = [0] * len(block)
    for n, operator in enumerate(block):
        for p in problem.predecessors[operator]:
            if p in position:
                successors[position[p]] |= 1 << n
    if not count_states(successors, _MOST_STATES):
        return []

    def members(ending: int) -> tuple[int, ...]:
        return tuple(o for n, o in enumerate(block) if ending >> n & 1)

    small = len(block) <= _SMALL
    graph = StageGraph(
        successors,
        problem.options.r or (len(block) if small else _R),
        problem.options.s or (len(block) if small else _S),
        lambda ending: latency.bound(members(ending)),
    )
    limit = latency.planned + max(_LEAST_PLANS, _PLANS * len(block))
    graph.time_stages(lambda ending: latency(members(ending)), lambda: latency.planned >= limit)
    is_graph = len(block) == len(problem.graph.operators)
    lists = graph.best(_LISTS_SMALL if small and is_graph else _LISTS)
    return [[members(ending) for ending in stages] for stages in lists]
