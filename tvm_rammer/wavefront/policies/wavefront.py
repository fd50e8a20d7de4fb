"""Rammer's own policy (OSDI 2020, Algorithm 1)."""

from collections.abc import Sequence

from ..plan.builder import Mark, ProgramBuilder
from ..plan.select_rkernels import append_wave, fastest, most_efficient
from ..problem import Problem
from .waves import waves


def wavefront(problem: Problem) -> list[ProgramBuilder]:
    """Plan wave after wave; each continues the current program or, where that is faster, starts a new one.

    Where a barrier costs no more than a launch, a new program has no advantage over a barrier. So
    then the choice is between counters and a barrier.

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
    barrier_us, launch_us = problem.cost.barrier_us, problem.cost.launch_us
    for wave in waves(problem.predecessors):
        current_us = current.time_us
        mark = current.mark()
        schedule_wave(wave, current)
        if barrier_us is not None and barrier_us <= launch_us:
            if problem.sync != "global" and current.time_us > current_us + barrier_us + _least_us(problem, wave):
                _try_barrier(wave, current, mark)
        elif current.time_us > current_us + launch_us + _least_us(problem, wave):
            alone = ProgramBuilder(problem)
            schedule_wave(wave, alone)
            if current.time_us > current_us + alone.time_us:
                current.rollback(mark)
                programs.append(current)
                current = alone
    # Missing in the paper's listing: the last program is emitted too.
    return [*programs, current] if current.kernels else programs


def schedule_wave(wave: Sequence[int], builder: ProgramBuilder) -> None:
    """ScheduleWave: append the operators of a wave to a program.

    Parameters
    ----------
    wave : sequence of int
        Operators that do not depend on each other.
    builder : ProgramBuilder
    """
    if builder.problem.sync == "global":
        builder.barrier()
    append_wave(wave, builder)


def _try_barrier(wave: Sequence[int], builder: ProgramBuilder, mark: Mark) -> None:
    """Put a barrier before a wave that was just appended, if waiting for its counters costs more."""
    cost = builder.problem.cost
    counters = len({p for o in wave for p in builder.problem.predecessors[o] if p in builder.kernels})
    if cost.barrier_us is None or cost.signal_us + cost.wait_us * (counters - 1) <= cost.barrier_us:
        return
    counters_us = builder.time_us
    builder.rollback(mark)
    builder.barrier()
    append_wave(wave, builder)
    if builder.time_us >= counters_us:
        builder.rollback(mark)
        append_wave(wave, builder)


def _least_us(problem: Problem, wave: Sequence[int]) -> float:
    """A lower bound on the time of a wave alone: it often saves planning the wave a second time."""
    cost, veus = problem.cost, problem.veus
    work_us = sum(cost.work_us(most_efficient(problem, o)) for o in wave)
    longest = max(cost.operator_us(fastest(problem, o), veus) for o in wave)
    # One part in a million less, so that rounding in the sum decides nothing.
    return max(work_us / veus, longest) * (1 - 1e-6)
