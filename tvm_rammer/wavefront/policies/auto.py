"""The default: the best of a few quick policies, by their predicted times."""

from ..plan.builder import ProgramBuilder
from ..predict.predicted import predicted_us
from ..problem import Problem
from .list_scheduling import list_scheduling
from .sequential import sequential
from .wavefront import schedule_wave, wavefront
from .waves import waves

MANY = 32
"""VEUs from which on a plan by critical path is tried, too: those of a GPU."""


def auto(problem: Problem) -> list[ProgramBuilder]:
    """Plan wave after wave, in the graph's order, and for many vEUs by critical path, and take the best plan.

    Waves put independent operators side by side, which is what a wide vDevice needs. On a few vEUs the graph's own
    order may be better: step after step of a recurrent layer reads weights that are still in the cache. On many a wave
    rarely fills all, and list scheduling begins whatever can begin. Where a launch costs less than a counter, a program
    for each wave may be best: so no plan is predicted to take longer than launching the operators one by one.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        In launch order.
    """
    plans = [wavefront(problem), sequential(problem)]
    if problem.cost.launch_us < problem.cost.signal_us:
        plans.append(_wave_by_wave(problem))
    if problem.veus >= MANY:
        plans.append(list_scheduling(problem))
    return min(plans, key=predicted_us)


def _wave_by_wave(problem: Problem) -> list[ProgramBuilder]:
    """A program for each wave."""
    programs = []
    for wave in waves(problem.predecessors):
        programs.append(ProgramBuilder(problem))
        schedule_wave(wave, programs[-1])
    return programs
