"""SelectRKernels of Rammer's Algorithm 1: fast or economical kernels for a wave."""

from collections.abc import Sequence

from ...ir import RKernel
from ..problem import Problem
from .append_operator import place
from .builder import ProgramBuilder


def fastest(problem: Problem, operator: int) -> RKernel:
    """The kernel with the least time of the operator alone on the vDevice."""
    cost, veus = problem.cost, problem.veus
    return min(problem.candidates(operator), key=lambda k: (cost.operator_us(k, veus), _work_us(problem, k)))


def efficient(problem: Problem, operator: int) -> RKernel:
    """The kernel with the least time x rTasks: it leaves most of the vDevice to others."""
    cost, veus = problem.cost, problem.veus
    return min(problem.candidates(operator), key=lambda k: (_work_us(problem, k), cost.operator_us(k, veus)))


def place_selected(wave: Sequence[int], builder: ProgramBuilder) -> None:
    """Choose the kernels of a wave, and append it.

    They are the fastest, unless their rTasks fill all vEUs and the efficient ones end the wave earlier.

    Parameters
    ----------
    wave : sequence of int
        Operators, each after those of them that it depends on: none in a wave, some in a stage of IOS.
    builder : ProgramBuilder
        Its program is continued.
    """
    mark = builder.mark()
    fast, *thrifty = _alternatives(wave, builder.problem)
    place_all(wave, fast, builder)
    for kernels in thrifty:
        fast_us = builder.time_us
        builder.rollback(mark)
        place_all(wave, kernels, builder)
        if builder.time_us >= fast_us:
            builder.rollback(mark)
            place_all(wave, fast, builder)


def selected_us(wave: Sequence[int], problem: Problem) -> float:
    """Time until the last vEU is done with a wave that `place_selected` plans on free vEUs."""
    found = []
    for kernels in _alternatives(wave, problem):
        alone = ProgramBuilder(problem)
        place_all(wave, kernels, alone)
        found.append(max(alone.ready_us))
    return min(found)


def place_all(operators: Sequence[int], kernels: Sequence[RKernel], builder: ProgramBuilder) -> None:
    """Append operators one after another, each with its kernel."""
    for operator, kernel in zip(operators, kernels, strict=True):
        place(operator, kernel, builder)


def _alternatives(wave: Sequence[int], problem: Problem) -> list[list[RKernel]]:
    """The fastest kernels; then the efficient ones, if they are others and the fastest would fill all vEUs."""
    fast = [fastest(problem, o) for o in wave]
    thrifty = [efficient(problem, o) for o in wave]
    fills = sum(k.num_rtasks for k in fast) >= problem.veus
    return [fast, thrifty] if fills and thrifty != fast else [fast]


def _work_us(problem: Problem, kernel: RKernel) -> float:
    return problem.cost.rtask_us(kernel) * kernel.num_rtasks
