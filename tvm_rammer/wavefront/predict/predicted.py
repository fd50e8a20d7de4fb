"""What a policy's programs will take, as `schedule` reports it."""

from collections.abc import Iterable

from ...ir import RProgram
from ..plan.builder import ProgramBuilder
from .simulate import simulate


def predicted_us(builders: Iterable[ProgramBuilder]) -> float:
    """Predicted time of programs in microseconds, their launches included.

    A builder's own clock is right where running rTasks neither disturb each other nor miss a cache; else a simulation
    tells.
    """
    return sum(_program_us(builder) for builder in builders)


def _program_us(builder: ProgramBuilder) -> float:
    problem = builder.problem
    if problem.cost.shared_gbps is None and problem.cost.caches is None:
        return builder.time_us
    kernels = tuple(builder.kernels[o] for o in sorted(builder.kernels))
    graph = problem.graph.subgraph(builder.kernels, problem.graph.name)
    lanes, num_events = builder.finish()
    program = RProgram(graph.name, graph, kernels, lanes, num_events, {}, 0, barriers=builder.mark().barriers)
    return problem.cost.launch_us + simulate(program, problem.cost).makespan_us
