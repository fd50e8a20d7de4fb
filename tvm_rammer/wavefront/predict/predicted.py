"""The predicted time of a policy's programs, as `schedule` reports it."""

from collections.abc import Iterable

from ..plan.builder import ProgramBuilder
from .simulate import simulate


def predicted_us(builders: Iterable[ProgramBuilder]) -> float:
    """Predicted time of programs in microseconds, their launches included.

    Where the cost model has neither contention nor caches a builder's own times are exact; else each program is
    simulated.
    """
    return sum(_program_us(builder) for builder in builders)


def _program_us(builder: ProgramBuilder) -> float:
    problem = builder.problem
    if problem.cost.shared_gbps is None and problem.cost.caches is None:
        return builder.time_us
    return problem.cost.launch_us + simulate(builder.program(problem.graph.name), problem.cost).makespan_us
