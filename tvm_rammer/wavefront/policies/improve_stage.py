"""Local search within one stage of a plan: other kernels, and operators one place earlier."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..problem import Problem
from .replay import Replay, Step

FARTHEST = 2
"""How far from the kernel of an operator others are tried, in the order of their numbers of rTasks."""

_LEAST_GAIN = 1e-9
"""Part of the time that a change must save: sums in another order are not another plan."""


def improve_stage(replay: Replay, steps: Sequence[Step]) -> list[Step]:
    """Change the operators of a stage one after another, the last one first, and keep what makes it end earlier.

    List scheduling chooses the kernel of an operator before it knows those that come later. Here all others are known.

    Parameters
    ----------
    replay : Replay
        Of a program that ends where the stage begins.
    steps : sequence of Step
        The stage as it was planned.

    Returns
    -------
    list of Step
        The stage as it is best; its program is `replay.builder`'s.
    """
    problem, best = replay.builder.problem, list(steps)
    best_us = replay.time_us(best)
    for at in reversed(range(len(best))):
        for changed in _changes(problem, best, at):
            time_us = replay.time_us(changed)
            if time_us < best_us * (1 - _LEAST_GAIN):
                best_us, best = time_us, changed
                break
    replay.time_us(best)
    return best


def _changes(problem: Problem, steps: Sequence[Step], at: int) -> Iterator[list[Step]]:
    """The steps with another kernel at a place, nearest first, or with this place and the one before it exchanged."""
    step = steps[at]
    kernels = sorted(problem.candidates(step.operator), key=lambda k: k.num_rtasks)
    now = kernels.index(step.kernel)
    for distance in range(1, FARTHEST + 1):
        for n in (now - distance, now + distance):
            if 0 <= n < len(kernels):
                yield [*steps[:at], replace(step, kernel=kernels[n]), *steps[at + 1 :]]
    if at and steps[at - 1].operator not in problem.predecessors[step.operator]:
        yield [*steps[: at - 1], step, steps[at - 1], *steps[at + 1 :]]
