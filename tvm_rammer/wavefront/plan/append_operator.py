"""Put one operator into a program: SelectvEU, Wait, Append."""

from collections.abc import Sequence
from itertools import accumulate

from ...ir import RKernel, Run
from .builder import ProgramBuilder, join
from .select_veu import select_veus
from .select_veu_by_data import select_homes


def place(operator: int, kernel: RKernel, builder: ProgramBuilder) -> None:
    """Append all rTasks of an operator, each on the vEU where it starts earliest.

    Of vEUs that are equally early an rTask takes the one that made what it reads. All that have no such home are
    dealt out in order: a vEU gets neighbouring rTasks rather than every n-th, for neighbours share cache lines and
    what they wait for.

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
    if all(a is arrivals[0] for a in arrivals):
        starts = [arrivals[0].start_us(veu, ready, signal_us) for veu, ready in enumerate(builder.ready_us)]
        runs = _chunks(operator, select_veus(starts, rtask_us, kernel.num_rtasks))
    else:
        chosen = select_homes(arrivals, builder.ready_us, rtask_us, signal_us)
        runs = [(veu, run) for veu in sorted(chosen) for chunk in chosen[veu] for run in _runs(operator, chunk)]
    for veu, run in runs:
        builder.wait(veu, problem.predecessors[operator], run, kernel)
        builder.append(run, veu, kernel)


def _chunks(operator: int, counts: Sequence[int]) -> list[tuple[int, Run]]:
    """Give each vEU its number of rTasks, in order."""
    ends = accumulate(counts)
    return [(veu, Run(operator, end - n, n)) for veu, (n, end) in enumerate(zip(counts, ends, strict=True)) if n]


def _runs(operator: int, indices: Sequence[int]) -> list[Run]:
    """Cut indices into as few arithmetic progressions as a greedy walk finds."""
    runs: list[Run] = []
    for index in indices:
        joined = join(runs[-1], Run(operator, index, 1)) if runs else None
        if joined:
            runs[-1] = joined
        else:
            runs.append(Run(operator, index, 1))
    return runs
