"""How many trials each function gets."""

from collections.abc import Sequence

from ..tasks import Task

MIN_TRIALS = 8
"""Trials of a function at least, where there are enough for all."""


def share_trials(tasks: Sequence[Task], trials: int) -> list[int]:
    """Share trials by predicted time, as MetaSchedule's scheduler weights its tasks.

    Parameters
    ----------
    tasks : sequence of Task
        By falling total time.
    trials : int

    Returns
    -------
    list of int
        For each task, no more than its space has tilings; all of them get some before any gets more by its share.
    """
    limits = [len(task.space) for task in tasks]
    given = [0] * len(tasks)
    left = min(trials, sum(limits))
    for _ in range(MIN_TRIALS):
        for i, limit in enumerate(limits):
            if left and given[i] < limit:
                given[i] += 1
                left -= 1
    while left:
        # The one whose share is farthest above what it has: the largest remainder, one trial at a time.
        i = max(
            (i for i, limit in enumerate(limits) if given[i] < limit), key=lambda i: tasks[i].total_us / (given[i] + 1)
        )
        given[i] += 1
        left -= 1
    return given
