"""The baseline: the order and the kernels of a stock executor, in one program."""

from ..plan.append_operator import append_operator
from ..plan.builder import ProgramBuilder
from ..plan.select_rkernels import fastest
from ..problem import Problem


def sequential(problem: Problem) -> list[ProgramBuilder]:
    """Plan operator after operator in the graph's order, with fastest kernels, in one program.

    With `sync="global"` a barrier after each operator keeps them strictly apart: a stock executor without
    its launches. With `"auto"` an operator waits only for its predecessors.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        One program; none for an empty graph.
    """
    return one_by_one(problem, barriers=problem.sync == "global")


def one_by_one(problem: Problem, *, barriers: bool) -> list[ProgramBuilder]:
    """One operator after another, each on all vEUs, with barriers between them or not."""
    builder = ProgramBuilder(problem)
    for operator in range(len(problem.graph.operators)):
        if barriers:
            builder.barrier()
        append_operator(operator, fastest(problem, operator), builder)
    return [builder] if builder.kernels else []
