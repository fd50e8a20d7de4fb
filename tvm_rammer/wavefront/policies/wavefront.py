"""Rammer's own policy (OSDI 2020, Algorithm 1)."""

from collections.abc import Sequence

from ..builder import ProgramBuilder
from ..problem import Problem
from ..select_rkernels import efficient, fastest, place_selected
from ..waves import waves


def wavefront(problem: Problem) -> list[ProgramBuilder]:
    """Plan wave after wave; each goes on in the current program or, where that is faster, starts a new one.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        In launch order.
    """
    programs: list[ProgramBuilder] = []
    current = ProgramBuilder(problem)
    for wave in waves(problem.predecessors):
        current_us = current.time_us
        mark = current.mark()
        schedule_wave(wave, current)
        if current.time_us <= current_us + _least_us(problem, wave):
            continue
        alone = ProgramBuilder(problem)
        schedule_wave(wave, alone)
        if current.time_us > current_us + alone.time_us:
            current.rollback(mark)
            programs.append(current)
            current = alone
    # Missing in the paper's listing: the last program is emitted too.
    return [*programs, current] if current.kernels else programs


def schedule_wave(wave: Sequence[int], builder: ProgramBuilder) -> None:
    """ScheduleWave: continue a program by the operators of a wave.

    Many counters to wait for can cost more than a barrier for all. So where that may be, both are tried.

    Parameters
    ----------
    wave : sequence of int
        Operators that do not depend on each other.
    builder : ProgramBuilder
    """
    problem = builder.problem
    if problem.sync == "global":
        builder.barrier()
    mark = builder.mark()
    place_selected(wave, builder)
    if problem.sync == "global" or not _barrier_may_pay(problem, wave, builder):
        return
    counters_us = builder.time_us
    builder.rollback(mark)
    builder.barrier()
    place_selected(wave, builder)
    if builder.time_us >= counters_us:
        builder.rollback(mark)
        place_selected(wave, builder)


def _barrier_may_pay(problem: Problem, wave: Sequence[int], builder: ProgramBuilder) -> bool:
    """Whether waiting for a counter of each operator that the wave reads could cost more than a barrier."""
    cost = problem.cost
    if cost.barrier_us is None:
        return False
    counters = len({p for o in wave for p in problem.predecessors[o] if p in builder.kernels})
    return counters > 1 and cost.signal_us + cost.wait_us * (counters - 1) > cost.barrier_us


def _least_us(problem: Problem, wave: Sequence[int]) -> float:
    """A time that no program of a wave can beat: most waves are decided without planning them a second time."""
    cost, veus = problem.cost, problem.veus
    work = sum(cost.rtask_us(k) * k.num_rtasks for k in (efficient(problem, o) for o in wave))
    longest = max(cost.operator_us(fastest(problem, o), veus) for o in wave)
    # One part in a million less, so that rounding in the sum decides nothing.
    return cost.launch_us + max(work / veus, longest) * (1 - 1e-6)
