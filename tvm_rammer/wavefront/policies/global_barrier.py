"""The simplest persistent kernel: one operator after another, with a barrier over the grid between them."""

from ..plan.builder import ProgramBuilder
from ..problem import Problem
from .sequential import one_by_one


def global_barrier(problem: Problem) -> list[ProgramBuilder]:
    """Plan operator after operator in the graph's order, with fastest kernels and a barrier between any two.

    The baseline for Rammer's co-scheduling: it saves launches, and nothing else. The barriers are there whatever
    `sync` says.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    return one_by_one(problem, barriers=True)
