"""From a graph and its kernels to verified rPrograms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..device import DeviceSpec
from ..errors import ScheduleError
from ..ir import Copies, RGraph, RKernel, RProgram
from .choose_veus import choose_veus
from .cost import CostModel
from .options import DEFAULTS, PolicyOptions
from .plan.builder import ProgramBuilder
from .plan.memory import plan_memory
from .policies import POLICIES
from .predict.simulate import simulate
from .problem import make_problem
from .verify.sequence import verify_sequence
from .verify.verify import verify
from .views import place_views, torn_apart

NO_COPIES: Copies = MappingProxyType({})


def schedule(
    graph: RGraph,
    kernels: Mapping[str, Sequence[RKernel]],
    device: DeviceSpec,
    *,
    veus: int,
    policy: str = "auto",
    sync: str = "auto",
    cost: CostModel | None = None,
    options: PolicyOptions | None = None,
    copies: Copies = NO_COPIES,
) -> tuple[RProgram, ...]:
    """Plan a graph: choose kernels, give rTasks to vEUs, add waits, and lay out the workspace.

    Parameters
    ----------
    graph : RGraph
    kernels : mapping of str to sequence of RKernel
        The candidates, at least one, for each function of the graph.
    device : DeviceSpec
        Where costs come from, and which must hold all vEUs at once.
    veus : int
        Number of vEUs; each program has as many lanes, some of them maybe empty. Where vEUs have to be woken
        (`CostModel.wake_us`), it has fewer if more would save less than they risk (`choose_veus`).
    policy : str
        A key of `POLICIES`.
    sync : {"auto", "global"}
        `auto`: as few waits as the dependences allow. `global`: a barrier over all vEUs between waves.
    cost : CostModel, optional
        Costs in place of the device's.
    options : PolicyOptions, optional
        Limits, seeds and budgets of policies.
    copies : Copies
        Functions that only copy: their operators are left out where views can take their place (`views`). One whose
        parts are written by several programs stays, since programs share no memory that is half written.

    Returns
    -------
    tuple of RProgram
        In launch order, each verified, and their order, too; together they hold each operator once, but for those that
        views replace. Program `k` is called `{graph.name}_{k}`, as its graph is.

    Raises
    ------
    ScheduleError
        An unknown policy or sync, no vEU, a function without kernels, or an impossible kernel.
    VerificationError
        The plan breaks a rule: a bug of the policy, or more vEUs than the device holds at once.
    """
    if policy not in POLICIES:
        raise ScheduleError(f"unknown policy {policy!r}; choose one of {', '.join(POLICIES)}")
    cost = cost or CostModel.of(device, veus)

    def plan(count: int) -> tuple[RProgram, ...]:
        return _schedule(graph, kernels, device, count, policy, sync, cost, options or DEFAULTS, copies)

    if not cost.wake_us:
        return plan(veus)
    return choose_veus(plan, veus, cost, _work_us(place_views(graph, copies), kernels, cost))


def _work_us(graph: RGraph, kernels: Mapping[str, Sequence[RKernel]], cost: CostModel) -> float:
    """The least time of all operators on one vEU; those without kernels are for the plan to find."""
    return sum(min(map(cost.work_us, kernels.get(op.function, ())), default=0.0) for op in graph.operators)


def _schedule(
    graph: RGraph,
    kernels: Mapping[str, Sequence[RKernel]],
    device: DeviceSpec,
    veus: int,
    policy: str,
    sync: str,
    cost: CostModel,
    options: PolicyOptions,
    copies: Copies,
) -> tuple[RProgram, ...]:
    """Plan for just so many vEUs."""
    kept: set[str] = set()
    while True:
        placed = place_views(graph, copies, kept)
        problem = make_problem(placed, kernels, cost, veus, sync)
        builders = POLICIES[policy](replace(problem, options=options))
        program_of = {placed.operators[o].name: k for k, builder in enumerate(builders) for o in builder.kernels}
        if not (torn := torn_apart(graph, program_of)):
            break
        kept |= torn
    programs = tuple(_finish(builder, f"{graph.name}_{k}", device) for k, builder in enumerate(builders))
    verify_sequence(graph, programs, copies)
    return programs


def _finish(builder: ProgramBuilder, name: str, device: DeviceSpec) -> RProgram:
    problem, program = builder.problem, builder.program(name)
    offsets, workspace_bytes = plan_memory(program.graph, program.lanes, program.num_events)
    program = replace(program, offsets=offsets, workspace_bytes=workspace_bytes)
    verify(program, device=device)
    return replace(program, makespan_us=problem.cost.launch_us + simulate(program, problem.cost).makespan_us)
