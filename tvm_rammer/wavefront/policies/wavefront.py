"""Rammer's own policy (OSDI 2020, Algorithm 1)."""

from collections.abc import Sequence

from ..builder import ProgramBuilder
from ..place import place
from ..problem import Problem
from ..select_rkernels import efficient, select_rkernels
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

    Parameters
    ----------
    wave : sequence of int
        Operators that do not depend on each other.
    builder : ProgramBuilder
    """
    problem = builder.problem
    if problem.sync == "global":
        builder.barrier()
    for operator, kernel in zip(wave, select_rkernels(problem, wave, builder), strict=True):
        place(operator, kernel, builder)


def _least_us(problem: Problem, wave: Sequence[int]) -> float:
    """A time that no program of a wave can beat: most waves are decided without planning them a second time."""
    cost = problem.cost
    work = sum(cost.rtask_us(k) * k.num_rtasks for k in (efficient(problem, o) for o in wave))
    # One part in a million less, so that rounding in the sum decides nothing.
    return cost.launch_us + work / problem.veus * (1 - 1e-6)
