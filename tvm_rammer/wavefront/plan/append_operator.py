"""Append all rTasks of one operator to a program: SelectvEU, Wait, Append (Rammer, Algorithm 1)."""

from collections.abc import Sequence
from itertools import accumulate

from ...ir import RKernel, Run
from .builder import ProgramBuilder, join
from .select_veu import select_veus
from .select_veu_by_data import select_veus_by_data


def append_operator(operator: int, kernel: RKernel, builder: ProgramBuilder) -> None:
    """Append all rTasks of an operator, each on the vEU where it starts earliest.

    Of vEUs that are equally early an rTask takes the one that made the data it reads. RTasks without such a vEU are
    dealt out in order: a vEU gets neighbouring rTasks rather than every n-th, since neighbours share cache lines and
    wait for the same data.

    Parameters
    ----------
    operator : int
    kernel : RKernel
    builder : ProgramBuilder
        Its program is continued.
    """
    problem = builder.problem
    rtask_us, signal_us = problem.cost.rtask_us(kernel), problem.cost.signal_us
    arrivals = builder.arrivals(operator, kernel)
    free = problem.ready_us(operator, builder.ready_us)
    if all(a is arrivals[0] for a in arrivals):
        starts = [arrivals[0].start_us(veu, ready, signal_us) for veu, ready in enumerate(free)]
        runs = _consecutive(operator, select_veus(starts, rtask_us, kernel.num_rtasks))
    else:
        chosen = select_veus_by_data(arrivals, free, rtask_us, signal_us)
        runs = [(veu, run) for veu in sorted(chosen) for chunk in chosen[veu] for run in _runs(operator, chunk)]
    for veu, run in runs:
        builder.wait(veu, problem.predecessors[operator], run, kernel)
        builder.append(run, veu, kernel)


def _consecutive(operator: int, counts: Sequence[int]) -> list[tuple[int, Run]]:
    """Give each vEU its number of rTasks, in order."""
    ends = accumulate(counts)
    return [(veu, Run(operator, end - n, n)) for veu, (n, end) in enumerate(zip(counts, ends, strict=True)) if n]


def _runs(operator: int, indices: Sequence[int]) -> list[Run]:
    """Cut indices greedily into arithmetic progressions."""
    runs: list[Run] = []
    for index in indices:
        joined = join(runs[-1], Run(operator, index, 1)) if runs else None
        if joined:
            runs[-1] = joined
        else:
            runs.append(Run(operator, index, 1))
    return runs
