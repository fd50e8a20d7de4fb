"""Several models on one vDevice: since their graphs are independent, one uses vEUs that the other leaves idle."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from ..device import DeviceSpec
from ..errors import ScheduleError
from ..ir import Copies, Instruction, RGraph, RKernel, RProgram, Run, align
from .cost import CostModel
from .merge_graphs import merge_graphs
from .options import PolicyOptions
from .predict.simulate import simulate
from .schedule import NO_COPIES, schedule
from .verify.sequence import verify_sequence
from .verify.verify import verify


def schedule_together(
    graphs: Sequence[RGraph],
    kernels: Mapping[str, Sequence[RKernel]],
    device: DeviceSpec,
    *,
    veus: int,
    shares: Sequence[float] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    cost: CostModel | None = None,
    options: PolicyOptions | None = None,
    copies: Copies = NO_COPIES,
    name: str = "together",
) -> tuple[RProgram, ...]:
    """Plan several graphs for one vDevice.

    Parameters
    ----------
    graphs : sequence of RGraph
        At least one; their names of buffers and operators are as in `merge_graphs`. Without shares the graphs come in
        the order of their priority: among operators that a policy ranks equal, those of earlier graphs come first.
    kernels, device, veus, policy, sync, cost, options, copies
        As in `schedule`.
    shares : sequence of float, optional
        A positive number for each graph. It gets vEUs of its own, next to each other, in proportion, at least one.
        Without shares all graphs use all vEUs.
    name : str
        Program `k` is called `{name}_{k}`.

    Returns
    -------
    tuple of RProgram
        In launch order, each verified, with `veus` lanes, or without shares maybe fewer. With shares, program `k` holds
        the `k`-th program of each graph: it is one program wherever each graph by itself is one.

    Raises
    ------
    ScheduleError
        As in `schedule`; also names that collide, or shares that are not positive or too many for the vEUs.
    """
    if not graphs:
        raise ScheduleError("no graph to schedule; give at least one")
    cost = cost or CostModel.of(device, veus)
    merged = merge_graphs(graphs, name).graph
    if shares is None:
        return schedule(
            merged, kernels, device, veus=veus, policy=policy, sync=sync, cost=cost, options=options, copies=copies
        )
    if len(shares) != len(graphs):
        raise ScheduleError(f"{len(shares)} shares for {len(graphs)} graphs; give one for each")
    lanes = divide_veus(veus, shares)
    whole = replace(cost, wake_us=0.0)  # no graph leaves vEUs of its own to others
    plans = [
        schedule(graph, kernels, device, veus=n, policy=policy, sync=sync, cost=whole, options=options, copies=copies)
        for graph, n in zip(graphs, lanes, strict=True)
    ]
    programs = tuple(_combine(plans, k, name, cost, lanes, device) for k in range(max(len(plan) for plan in plans)))
    verify_sequence(merged, programs, copies)
    return programs


def divide_veus(veus: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Divide vEUs in proportion to shares, by largest remainders; each gets at least one.

    Raises
    ------
    ScheduleError
        Fewer vEUs than shares, or a share that is not positive.
    """
    if any(not (math.isfinite(share) and share > 0) for share in shares):
        raise ScheduleError(f"shares are {tuple(shares)}; give a positive number for each model")
    if veus < len(shares):
        raise ScheduleError(f"{veus} vEUs cannot be divided among {len(shares)} graphs; leave the shares out")
    # One for each beforehand, so that the smallest share gets one, too.
    spare, total = veus - len(shares), sum(shares)
    exact = [spare * share / total for share in shares]
    counts = [math.floor(part) for part in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: spare - sum(counts)]:
        counts[i] += 1
    return tuple(1 + count for count in counts)


def _combine(
    plans: Sequence[Sequence[RProgram]], k: int, name: str, cost: CostModel, lanes: Sequence[int], device: DeviceSpec
) -> RProgram:
    """The `k`-th programs of all graphs side by side; lanes of a graph without a `k`-th one are empty."""
    present = [plan[k] if k < len(plan) else _empty_program(n) for plan, n in zip(plans, lanes, strict=True)]
    program = unite_programs(present, f"{name}_{k}")
    verify(program, device=device)
    return replace(program, makespan_us=cost.launch_us + simulate(program, cost).makespan_us)


def _empty_program(lanes: int) -> RProgram:
    return RProgram("", RGraph("", (), ()), (), ((),) * lanes, 0, {}, 0)


def unite_programs(programs: Sequence[RProgram], name: str) -> RProgram:
    """Put independent programs side by side: lanes, events and memory of each are its own.

    Parameters
    ----------
    programs : sequence of RProgram
        Names in their graphs are as in `merge_graphs`.
    name : str
        Of the new program and its graph.

    Returns
    -------
    RProgram
        With the lanes of all programs, in their order; it is not yet verified, and its makespan is 0.
    """
    merged = merge_graphs([program.graph for program in programs], name)
    lanes: list[tuple[Instruction, ...]] = []
    offsets: dict[int, int] = {}
    workspace = 0
    for program, position, first, events in zip(
        programs, merged.buffers, merged.first_operator, _event_numbers(programs), strict=True
    ):
        lanes += [tuple(_renumbered(i, first, events) for i in lane) for lane in program.lanes]
        offsets |= {position[b]: workspace + offset for b, offset in program.offsets.items()}
        workspace += align(program.workspace_bytes)
    return RProgram(
        name, merged.graph, tuple(kernel for program in programs for kernel in program.kernels), tuple(lanes),
        sum(program.num_events for program in programs), offsets, workspace,
        barriers=sum(program.barriers for program in programs),
    )  # fmt: skip


def _event_numbers(programs: Sequence[RProgram]) -> list[list[int]]:
    """For each program the new numbers of its events; barriers come last again, as in each program."""
    counters = count()
    numbers = [[next(counters) for _ in range(p.num_events - p.barriers)] for p in programs]
    return [given + [next(counters) for _ in range(p.barriers)] for given, p in zip(numbers, programs, strict=True)]


def _renumbered(instruction: Instruction, first_operator: int, events: Sequence[int]) -> Instruction:
    if isinstance(instruction, Run):
        return replace(instruction, operator=first_operator + instruction.operator)
    return replace(instruction, event=events[instruction.event])
