"""Put one operator into a program: SelectvEU, Wait, Append."""

from ..ir import RKernel, Run
from .builder import ProgramBuilder
from .select_veu import select_veus


def place(operator: int, kernel: RKernel, builder: ProgramBuilder) -> None:
    """Append all rTasks of an operator, each on the vEU where it starts earliest.

    A vEU gets neighbouring rTasks rather than every n-th: they are equal, and neighbours share cache lines.

    Parameters
    ----------
    operator : int
    kernel : RKernel
    builder : ProgramBuilder
        Its program is continued.
    """
    problem = builder.problem
    before = problem.predecessors[operator]
    starts = builder.earliest_starts(before)
    first = 0
    for veu, count in enumerate(select_veus(starts, problem.cost.rtask_us(kernel), kernel.num_rtasks)):
        if count:
            builder.wait(veu, before)
            builder.append(Run(operator, first, count), veu, kernel)
            first += count
