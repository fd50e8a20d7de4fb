"""The simplest persistent kernel: one operator after another, the whole grid in step."""

from ..builder import ProgramBuilder
from ..place import place
from ..problem import Problem
from ..select_rkernels import fastest


def global_barrier(problem: Problem) -> list[ProgramBuilder]:
    """Plan operator after operator in the graph's order, with fastest kernels and a barrier between any two.

    What Rammer's co-scheduling is measured against: the launches are gone, and nothing else is won. The
    barriers are there whatever `sync` says.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    builder = ProgramBuilder(problem)
    for operator in range(len(problem.graph.operators)):
        builder.barrier()
        place(operator, fastest(problem, operator), builder)
    return [builder] if builder.kernels else []
