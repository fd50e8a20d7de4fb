"""From the plan of one step to the plan of a loop: waits for what other lanes did in the steps before.

Within a step the plan is one like any other. What crosses from step to step is found here: a value that is handed on,
and memory that the next step writes again. Steps overlap wherever none of this forbids it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....errors import ScheduleError
from ....ir import Lane, Place, RGraph, RKernel, Run, Signal, Wait
from ..dependences import between, union

_MOST_STEPS = 32
"""Within so many steps what lanes know of each other has become the same in each."""

ALL = -1
"""In the place of a lane: all that run the operator."""

FEW = 4
"""A wait for more lanes than these may be for all that run the operator, by a counter that all of them add to."""


@dataclass(frozen=True, slots=True)
class Need:
    """A wait for all `Run`s of an operator in another lane, or in `ALL`, of this step or of one so many steps back."""

    lane: int
    operator: int
    back: int


Plan = list[list[Run | Need]]
"""Lanes before events have numbers."""


@dataclass(frozen=True, slots=True)
class _Conflict:
    """Accesses of the same memory: operator `one` must have ended in a step before `other` begins `later` steps later.

    `parameter` and `other_parameter` are the buffers, by their positions among those of the operators.
    """

    one: int
    parameter: int
    other: int
    other_parameter: int
    later: int


def carry(
    graph: RGraph, kernels: Sequence[RKernel], lanes: Sequence[Lane], few: int = FEW
) -> tuple[tuple[Lane, ...], int]:
    """Add to the plan of a step what makes it the plan of a loop.

    Each event gets one signal a step, of one lane: then a counter says how many steps that lane has done, even where
    lanes are several steps apart. Only where many lanes would be waited for they may share a counter: it says how many
    steps all have done if none of them signals again before all have, which the verifier has to find proven.

    Parameters
    ----------
    graph : RGraph
        Of several steps.
    kernels : sequence of RKernel
        Of each operator.
    lanes : sequence of Lane
        The plan of one step, without barriers.
    few : int
        For how many lanes of an operator there are waits one by one.

    Returns
    -------
    lanes : tuple of Lane
    num_events : int

    Raises
    ------
    ScheduleError
        A buffer is read as a whole, and written slot by slot.
    """
    plan = _without_events(lanes, few)
    known = _known(plan)
    for conflict in _conflicts(graph):
        if _order(plan, known, conflict, graph, kernels, few):
            known = _known(plan)
    return _with_events(plan)


def _without_events(lanes: Sequence[Lane], few: int) -> Plan:
    """Replace each wait by one for each other lane that signals its event."""
    signals: dict[int, list[tuple[int, int]]] = {}
    for v, lane in enumerate(lanes):
        operator = -1
        for instruction in lane:
            if isinstance(instruction, Run):
                operator = instruction.operator
            elif isinstance(instruction, Signal):
                signals.setdefault(instruction.event, []).append((v, operator))
    plan: Plan = []
    for v, lane in enumerate(lanes):
        plan.append([])
        for instruction in lane:
            if isinstance(instruction, Run):
                plan[v].append(instruction)
            elif isinstance(instruction, Wait):
                plan[v] += _needs([(u, o) for u, o in signals[instruction.event] if u != v], 0, few)
    return plan


def _needs(lanes: Sequence[tuple[int, int]], back: int, few: int) -> list[Need]:
    """The waits for some lanes and what they run, an operator at a time."""
    operators = dict.fromkeys(o for _, o in lanes)
    found = []
    for operator in operators:
        some = [u for u, o in lanes if o == operator]
        found += [Need(u, operator, back) for u in (some if len(some) <= few else [ALL])]
    return found


def _with_events(plan: Plan) -> tuple[tuple[Lane, ...], int]:
    needs = [item for lane in plan for item in lane if isinstance(item, Need)]
    events = {key: n for n, key in enumerate(sorted({(need.operator, need.lane) for need in needs}))}
    runs = Counter(o for items in plan for o in {item.operator for item in items if isinstance(item, Run)})
    lanes: list[Lane] = []
    for v, items in enumerate(plan):
        last = {item.operator: n for n, item in enumerate(items) if isinstance(item, Run)}
        lane: list[Run | Signal | Wait] = []
        for n, item in enumerate(items):
            if isinstance(item, Need):
                arrivals = runs[item.operator] if item.lane == ALL else 1
                lane.append(Wait(events[item.operator, item.lane], arrivals, item.back))
                continue
            lane.append(item)
            if last[item.operator] == n:
                lane += [Signal(events[key]) for key in ((item.operator, ALL), (item.operator, v)) if key in events]
        lanes.append(tuple(lane))
    return tuple(lanes), len(events)


def _conflicts(graph: RGraph) -> Iterator[_Conflict]:
    """Pairs of accesses of one memory in different steps, of which at least one writes."""
    touching: dict[int, list[tuple[int, int, bool]]] = {}
    for o, op in enumerate(graph.operators):
        for p, b in enumerate((*op.inputs, *op.outputs)):
            touching.setdefault(graph.extent(b).base, []).append((o, p, p >= len(op.inputs)))
    for accesses in touching.values():
        for one, parameter, writes in accesses:
            for other, other_parameter, other_writes in accesses:
                if writes or other_writes:
                    buffers = [
                        (*graph.operators[o].inputs, *graph.operators[o].outputs)[p]
                        for o, p in ((one, parameter), (other, other_parameter))
                    ]
                    later = _steps_between(*(graph.buffers[b].place for b in buffers))
                    if later is not None:
                        yield _Conflict(one, parameter, other, other_parameter, later)


def _steps_between(one: Place | None, other: Place | None) -> int | None:
    """After how many steps, at least 1, the second place covers the bytes that the first one had; None for never."""
    strides = [place.stride if place else 0 for place in (one, other)]
    if not any(strides):
        return 1
    if one is None or other is None or replace(one, base=0, ahead=0) != replace(other, base=0, ahead=0):
        raise ScheduleError("a buffer of a loop is touched slot by slot and as a whole, or in slots of two sizes")
    steps = one.ahead - other.ahead
    if one.phases:
        return (steps - 1) % one.phases + 1
    return steps if steps > 0 else None


def _order(
    plan: Plan,
    all_known: Sequence[Sequence["Known"]],
    conflict: _Conflict,
    graph: RGraph,
    kernels: Sequence[RKernel],
    few: int,
) -> bool:
    """Add the waits that a conflict still needs, each before the `Run` that comes later; False if it needs none."""
    one, other = conflict.one, conflict.other
    touching = between(graph, one, kernels[one], conflict.parameter, other, kernels[other], conflict.other_parameter)
    everything = (1 << kernels[one].num_rtasks) - 1
    lengths = [len(lane) for lane in plan]
    last_runs: dict[int, dict[int, int]] = {}
    added: list[tuple[int, int, list[Need]]] = []
    for v, lane in enumerate(plan):
        learnt: dict[int, int] = {}
        for n, item in enumerate(lane):
            if not isinstance(item, Run) or item.operator != other:
                continue
            wanted = everything if touching is None else union(touching, item.indices())
            if wanted not in last_runs:
                last_runs[wanted] = _last_runs(plan, one, wanted)
            missing = []
            for u, last in last_runs[wanted].items():
                known = max(all_known[v][n][u], learnt.get(u, all_known[v][n][u]))
                if u != v and known < last + 1 - conflict.later * lengths[u]:
                    missing.append((u, one))
                    learnt[u] = last + 1 - conflict.later * lengths[u]
            if missing:
                added.append((v, n, _needs(missing, conflict.later, few)))
    for v, n, needs in reversed(added):
        plan[v][n:n] = needs
    return bool(added)


def _last_runs(plan: Plan, operator: int, rtasks: int) -> dict[int, int]:
    """For each lane that runs some rTasks (bits) of an operator the position of the last such `Run`."""
    return {
        v: n
        for v, lane in enumerate(plan)
        for n, item in enumerate(lane)
        if isinstance(item, Run) and item.operator == operator and any(rtasks >> t & 1 for t in item.indices())
    }


Known = list[int]
"""How far each lane is known to be, counted in its items from the beginning of the step that one is in."""


def _known(plan: Plan) -> list[list[Known]]:
    """For each item of each lane what the lane knows of the others there, once that is the same in each step.

    A wait teaches what was known where the signal was given. What was learnt in one step is known in the next, when it
    is a whole lane further back.
    """
    lengths = [len(lane) for lane in plan]
    nothing = [-_MOST_STEPS * length for length in lengths]
    ends = _ends(plan)
    order = list(_in_order(plan, ends))
    at: list[list[Known]] = [[nothing for _ in lane] for lane in plan]
    last = [nothing for _ in plan]
    for _ in range(_MOST_STEPS):
        before, before_last = at, last
        at = [list(lane) for lane in at]
        last = [[known - length for known, length in zip(lane, lengths, strict=True)] for lane in last]
        taught: dict[Need, Known] = {}
        for v, n in order:
            item = plan[v][n]
            if isinstance(item, Need):
                # Steps further back than one teach no more than the one before them did.
                if item not in taught:
                    taught[item] = _taught(item, ends, at if item.back == 0 else before, lengths)
                last[v] = list(map(max, last[v], taught[item]))
            at[v][n] = last[v]
        if at == before and last == before_last:
            break
    return at


Ends = dict[int, dict[int, int]]
"""For each operator where each lane that runs it has its last `Run` of it."""


def _ends(plan: Plan) -> Ends:
    ends: Ends = {}
    for v, lane in enumerate(plan):
        for n, item in enumerate(lane):
            if isinstance(item, Run):
                ends.setdefault(item.operator, {})[v] = n
    return ends


def _taught(need: Need, ends: Ends, at: list[list[Known]], lengths: Sequence[int]) -> Known:
    """What is known after a wait."""
    runs = ends[need.operator]
    some = runs if need.lane == ALL else {need.lane: runs[need.lane]}
    there = [max(known) for known in zip(*(at[u][n] for u, n in some.items()), strict=True)]
    for u, n in some.items():
        there[u] = max(there[u], n + 1)
    return [b - need.back * length for b, length in zip(there, lengths, strict=True)]


def _in_order(plan: Plan, ends: Ends) -> Iterator[tuple[int, int]]:
    """All items, as lane and position, in an order in which waits for the same step find what they wait for."""
    at = [0] * len(plan)
    remaining = sum(map(len, plan))
    while remaining:
        before = remaining
        for v, lane in enumerate(plan):
            while at[v] < len(lane):
                item = lane[at[v]]
                if isinstance(item, Need) and item.back == 0:
                    runs = ends[item.operator]
                    some = runs.items() if item.lane == ALL else [(item.lane, runs[item.lane])]
                    if any(at[u] <= n for u, n in some if u != v):
                        break
                yield v, at[v]
                at[v] += 1
                remaining -= 1
        if remaining == before:
            raise ScheduleError("the lanes of a step wait for each other")
