"""SelectRKernels of Rammer's Algorithm 1: the fastest or the most efficient kernels for a wave."""

from collections.abc import Sequence

from ...ir import RKernel
from ..problem import Problem
from .append_operator import append_operator
from .builder import ProgramBuilder


def fastest(problem: Problem, operator: int) -> RKernel:
    """The kernel with the least time of the operator alone on the vDevice."""
    cost, veus = problem.cost, problem.veus
    return min(problem.candidates(operator), key=lambda k: (cost.operator_us(k, veus), cost.work_us(k)))


def most_efficient(problem: Problem, operator: int) -> RKernel:
    """The kernel with the least time x rTasks: it leaves most of the vDevice to others."""
    cost, veus = problem.cost, problem.veus
    return min(problem.candidates(operator), key=lambda k: (cost.work_us(k), cost.operator_us(k, veus)))


def append_wave(wave: Sequence[int], builder: ProgramBuilder) -> None:
    """Choose the kernels of a wave, and append its operators.

    The kernels are the fastest, unless their rTasks fill all vEUs and the most efficient ones end the wave earlier.

    Parameters
    ----------
    wave : sequence of int
        Operators, each after those of them that it depends on: none in a wave, some in a stage of IOS.
    builder : ProgramBuilder
        Its program is continued.
    """
    mark = builder.mark()
    fast, *alternatives = _alternatives(wave, builder.problem)
    _append_all(wave, fast, builder)
    for kernels in alternatives:
        fast_us = builder.time_us
        builder.rollback(mark)
        _append_all(wave, kernels, builder)
        if builder.time_us >= fast_us:
            builder.rollback(mark)
            _append_all(wave, fast, builder)


def wave_us(wave: Sequence[int], problem: Problem) -> float:
    """Time until the last vEU has run a wave that `append_wave` appends to an empty program."""
    found = []
    for kernels in _alternatives(wave, problem):
        alone = ProgramBuilder(problem)
        _append_all(wave, kernels, alone)
        found.append(max(alone.ready_us))
    return min(found)


def _append_all(operators: Sequence[int], kernels: Sequence[RKernel], builder: ProgramBuilder) -> None:
    for operator, kernel in zip(operators, kernels, strict=True):
        append_operator(operator, kernel, builder)


def _alternatives(wave: Sequence[int], problem: Problem) -> list[list[RKernel]]:
    """The fastest kernels; then the most efficient, if they are others and the fastest would fill all vEUs."""
    fast = [fastest(problem, o) for o in wave]
    efficient = [most_efficient(problem, o) for o in wave]
    fills = sum(k.num_rtasks for k in fast) >= problem.veus
    return [fast, efficient] if fills and efficient != fast else [fast]
