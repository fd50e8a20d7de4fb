"""From the graph of a loop and its kernels to one verified rProgram of several steps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..device import DeviceSpec
from ..errors import VerificationError
from ..ir import Copies, RGraph, RKernel, RProgram, align, unroll
from .choose_veus import choose_veus, priced_us
from .cost import CostModel
from .keep_slices import as_if_kept, keep_slices
from .options import DEFAULTS, PolicyOptions
from .pipeline import lanes_of_stages, pipeline_stages
from .plan.loops.carry import FEW, carry
from .plan.loops.leave import wait_for_condition, with_exit
from .policies.list_scheduling import list_scheduling
from .predict.simulate import simulate
from .problem import Problem, make_problem
from .verify.sequence import verify_sequence
from .verify.verify import verify
from .views import place_views

_SIMULATED_STEPS = 4, 8
"""The time of a step is that between these, when all steps take the same time."""

_SURELY_APART = 4
"""With so many vEUs for each stage of a pipeline no other plan is made: stages wait for each other wherever all share
all vEUs."""


def schedule_loop(
    graph: RGraph,
    kernels: Mapping[str, Sequence[RKernel]],
    device: DeviceSpec,
    *,
    veus: int,
    cost: CostModel | None = None,
    options: PolicyOptions | None = None,
    copies: Copies | None = None,
) -> tuple[RProgram, ...]:
    """Plan a loop: one step by list scheduling, then the waits across steps, then which weights stay on the vEUs.

    Where a step has cycles that follow each other (`pipeline`), plans are made in which each has vEUs of its own.
    Plans for fewer vEUs are made, too (`choose_veus`): where a step is short, its waits cost more than another vEU
    saves.

    Parameters
    ----------
    graph : RGraph
        Of several steps.
    kernels, device, veus, cost, options, copies
        As for `schedule`.

    Returns
    -------
    tuple of RProgram
        A single one, verified. It has as many lanes as vEUs are worth it.

    Raises
    ------
    ScheduleError
        The loop cannot be planned.
    """
    cost = cost or CostModel.of(device)
    placed, as_kept = place_views(graph, copies or {}), as_if_kept(kernels, device)
    own = {kernel.name: kernel for made in kernels.values() for kernel in made}

    def plan(count: int) -> tuple[RProgram, ...]:
        problem = replace(make_problem(placed, as_kept, cost, count, "auto"), options=options or DEFAULTS)
        return min(_plans(problem, own, device), key=lambda programs: priced_us(programs, cost, brief=False))

    work_us = graph.steps * sum(min(map(cost.work_us, as_kept[op.function])) for op in placed.operators)
    best = choose_veus(plan, veus, cost, work_us)
    verify_sequence(graph, best, copies)
    return best


def _plans(problem: Problem, own: Mapping[str, RKernel], device: DeviceSpec) -> Iterator[tuple[RProgram]]:
    """With all vEUs for all operators, and with vEUs of its own for each stage of a pipeline."""
    graph, cost, veus = problem.graph, problem.cost, problem.veus
    stages = pipeline_stages(graph, problem.predecessors)
    count = max(stages, default=0) + 1
    if count == 1 or veus < _SURELY_APART * count:
        yield (_plan(problem, own, device),)
    if count > 1 and veus > 1:
        lanes = lanes_of_stages(graph, stages, problem.kernels, cost, veus)
        yield (_plan(replace(problem, lanes=lanes), own, device),)


def _plan(problem: Problem, own: Mapping[str, RKernel], device: DeviceSpec) -> RProgram:
    graph, cost, veus = problem.graph, problem.cost, problem.veus
    (builder,) = list_scheduling(problem)
    step = builder.program(f"{graph.name}_0")
    step = replace(step, kernels=tuple(own[kernel.name] for kernel in step.kernels))
    offsets, workspace_bytes = _plan_memory(step.graph)
    step = replace(step, offsets=offsets, workspace_bytes=workspace_bytes)
    try:
        program = _with_waits(step, FEW, device)
    except VerificationError:  # lanes of one counter may be several steps apart
        program = _with_waits(step, veus, device)
    return replace(program, makespan_us=cost.launch_us + _predict_us(program, cost))


def _with_waits(step: RProgram, few: int, device: DeviceSpec) -> RProgram:
    """The loop with its waits across steps, verified; up to `few` lanes of an operator are waited for one by one."""
    ends_by_condition = step.graph.condition is not None
    planned = wait_for_condition(step.graph, step.lanes) if ends_by_condition else step.lanes
    lanes, num_events = carry(step.graph, step.kernels, planned, few)
    program = keep_slices(replace(step, lanes=lanes, num_events=num_events), device)
    if ends_by_condition:
        program = with_exit(program)
    verify(program, device=device)
    return program


def _plan_memory(graph: RGraph) -> tuple[dict[int, int], int]:
    """Give each buffer bytes of its own: the next step may write one while others of this step are still read."""
    offsets: dict[int, int] = {}
    end = 0
    for b, buffer in enumerate(graph.buffers):
        if buffer.kind == "intermediate":
            offsets[b] = end
            end += align(buffer.nbytes)
    return offsets, end


def _predict_us(program: RProgram, cost: CostModel) -> float:
    """Time of all steps: the first few are simulated, and the others take as long as the last of these."""
    few, more = (simulate(unroll(program, steps), cost).makespan_us for steps in _SIMULATED_STEPS)
    if program.steps <= _SIMULATED_STEPS[1]:
        return more
    return more + (program.steps - _SIMULATED_STEPS[1]) * (more - few) / (_SIMULATED_STEPS[1] - _SIMULATED_STEPS[0])
