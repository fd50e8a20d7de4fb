"""SelectRKernels of Rammer's Algorithm 1: fast or economical kernels for a wave."""

from collections.abc import Sequence

from ..ir import RKernel
from .builder import ProgramBuilder
from .place import place
from .problem import Problem


def fastest(problem: Problem, operator: int) -> RKernel:
    """The kernel with the least time of the operator alone on the vDevice."""
    cost, veus = problem.cost, problem.veus
    return min(problem.candidates(operator), key=lambda k: (cost.operator_us(k, veus), _work_us(problem, k)))


def efficient(problem: Problem, operator: int) -> RKernel:
    """The kernel with the least time x rTasks: it leaves most of the vDevice to others."""
    cost, veus = problem.cost, problem.veus
    return min(problem.candidates(operator), key=lambda k: (_work_us(problem, k), cost.operator_us(k, veus)))


def select_rkernels(problem: Problem, wave: Sequence[int], builder: ProgramBuilder) -> tuple[RKernel, ...]:
    """Choose the kernels of a wave.

    Parameters
    ----------
    problem : Problem
    wave : sequence of int
        Operators that do not depend on each other.
    builder : ProgramBuilder
        The program that the wave would continue; left as it was.

    Returns
    -------
    tuple of RKernel
        The fastest, unless their rTasks fill all vEUs and the efficient ones end the wave earlier.
    """
    fast = tuple(fastest(problem, o) for o in wave)
    if sum(k.num_rtasks for k in fast) < problem.veus:
        return fast
    thrifty = tuple(efficient(problem, o) for o in wave)
    if thrifty == fast or _try(wave, fast, builder) <= _try(wave, thrifty, builder):
        return fast
    return thrifty


def _work_us(problem: Problem, kernel: RKernel) -> float:
    return problem.cost.rtask_us(kernel) * kernel.num_rtasks


def _try(wave: Sequence[int], kernels: Sequence[RKernel], builder: ProgramBuilder) -> float:
    mark = builder.mark()
    for operator, kernel in zip(wave, kernels, strict=True):
        place(operator, kernel, builder)
    time_us = builder.time_us
    builder.rollback(mark)
    return time_us
