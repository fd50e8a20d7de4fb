"""Plans of loops are right; the proof by induction accepts no mutant that is not, and agrees with the unrolled one."""

import importlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

import pytest

from tests.marks import slow_but
from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import VIEW_ALIGNMENT, Place, RGraph, RProgram, Run, Signal, Wait, align, unroll
from tvm_rammer.wavefront import CostModel, schedule_loop, verify, verify_sequence

from ..graphs import DEVICE, FREE, SYNC_COSTS
from ..loop_graphs import loop_graph
from ..loop_judge import data_flow, is_right, of_run
from .mutants import (
    Mutation,
    drop_a_signal,
    drop_a_wait,
    move_a_run,
    signal_another,
    swap_instructions,
    wait_for_another,
    with_lanes,
)

CPU = replace(DEVICE, kind="cpu")
SEEDS = pytest.mark.parametrize("seed", slow_but(list(range(3)), list(range(8))))


COUNTED = pytest.mark.parametrize("counted", [False, True], ids=["known_steps", "counted_steps"])


def planned(seed: int, part: int = 1, counted: bool = False) -> tuple[RGraph, RProgram]:
    """A random loop and its plan, verified by `schedule_loop`; of two plans sometimes the one for a pipeline."""
    rng = random.Random(seed)
    graph, kernels = loop_graph(rng, part, counted=counted)
    cost = rng.choice([FREE, FREE, SYNC_COSTS, CostModel(signal_us=0.01)])
    few = rng.choice([0, 1, 4])  # with 0 all waits are for counters that several lanes add to, where that may be
    with pytest.MonkeyPatch.context() as patch:
        scheduling = importlib.import_module("tvm_rammer.wavefront.schedule_loop")
        patch.setattr(scheduling, "FEW", few)
        if seed % 2:
            plans = scheduling._plans
            patch.setattr(scheduling, "_plans", lambda *args: list(plans(*args))[-1:])
        (program,) = schedule_loop(graph, kernels, CPU, veus=rng.randint(1, 4), cost=cost)
    return graph, program


def is_accepted(program: RProgram, graph: RGraph) -> bool:
    try:
        verify(program)
        verify_sequence(graph, [program])
    except VerificationError:
        return False
    return True


@SEEDS
@COUNTED
def test_plans_of_random_loops_are_right(seed, counted):
    for n in range(10 if counted else 40):
        graph, program = planned(1000 * seed + n, counted=counted)
        assert is_right(program, graph), (seed, n)


@SEEDS
def test_what_is_proven_by_induction_is_proven_step_by_step(seed):
    for n in range(40):
        graph, program = planned(1000 * seed + n, part=VIEW_ALIGNMENT)
        rings = [
            b for b in graph.buffers if b.place and b.place.phases and graph.buffers[b.place.base].kind == "output"
        ]
        if not rings:  # of an output only the last value counts; unrolled, it would have several writers
            verify(_apart(unroll(program)))


def _apart(program: RProgram) -> RProgram:
    """The program with memory of its own for each step, since the other proof orders such memory by whole operators."""
    ends = list(accumulate((align(program.graph.buffers[b].nbytes) for b in sorted(program.offsets)), initial=0))
    return replace(program, offsets=dict(zip(sorted(program.offsets), ends, strict=False)), workspace_bytes=ends[-1])


def other_back(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a wait be for another step."""
    waits = [(v, n, i) for v, n, i in program.instructions() if isinstance(i, Wait)]
    if not waits:
        return None
    v, n, wait = rng.choice(waits)
    lane = list(program.lanes[v])
    lane[n] = replace(wait, back=rng.choice([b for b in range(3) if b != wait.back]))
    return with_lanes(program, {v: lane})


def one_event_for_two_lanes(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let two lanes signal one event, whose waits are for both."""
    if program.num_events < 2:
        return None
    kept, gone = rng.sample(range(program.num_events), 2)
    lanes = []
    for lane in program.lanes:
        changed = [replace(i, event=kept) if isinstance(i, Signal | Wait) and i.event == gone else i for i in lane]
        changed = [replace(i, arrivals=2) if isinstance(i, Wait) and i.event == kept else i for i in changed]
        lanes.append(tuple(changed))
    number = {e: n for n, e in enumerate(e for e in range(program.num_events) if e != gone)}
    renumbered = tuple(
        tuple(replace(i, event=number[i.event]) if isinstance(i, Signal | Wait) else i for i in lane) for lane in lanes
    )
    return replace(program, lanes=renumbered, num_events=program.num_events - 1)


def other_place(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a view move in another way."""
    graph = program.graph
    moving = [n for n, b in enumerate(graph.buffers) if b.place is not None and b.place.stride]
    n = rng.choice(moving)
    place = graph.buffers[n].place
    assert place is not None
    changes: list[Callable[[], Place]] = [
        lambda: replace(place, ahead=place.ahead + rng.choice([-1, 1])),
        lambda: replace(place, stride=-place.stride),
        lambda: replace(place, phases=rng.choice([0, 2, 3])),
        lambda: replace(place, offset=place.offset + rng.choice([-4, 4])),
        lambda: replace(place, from_end=not place.from_end),
    ]
    buffers = list(graph.buffers)
    buffers[n] = replace(buffers[n], place=rng.choice(changes)())
    return replace(program, graph=replace(graph, buffers=tuple(buffers)))


def other_steps(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let the loop be longer or shorter."""
    return replace(program, graph=replace(program.graph, steps=program.steps + rng.choice([-1, 1])))


def other_count(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let the number of steps come from elsewhere, or count another number of rows, or be known."""
    count = program.graph.trip_count
    if count is None:
        return None
    inputs = [b for b, buffer in enumerate(program.graph.buffers) if b != count.buffer]
    changed = rng.choice([replace(count, buffer=rng.choice(inputs)), replace(count, rows=2), None])
    return replace(program, graph=replace(program.graph, trip_count=changed))


def no_first(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let an operator read in step 0 what it reads later."""
    operators = list(program.graph.operators)
    starting = [n for n, op in enumerate(operators) if op.first]
    if not starting:
        return None
    n = rng.choice(starting)
    operators[n] = replace(operators[n], first=())
    return replace(program, graph=replace(program.graph, operators=tuple(operators)))


def shared_memory(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let two buffers lie in one place."""
    if len(program.offsets) < 2:
        return None
    one, other = rng.sample(sorted(program.offsets), 2)
    return replace(program, offsets=program.offsets | {one: program.offsets[other]})


def move_within_a_lane(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a lane do something earlier or later."""
    v = rng.randrange(len(program.lanes))
    lane = list(program.lanes[v])
    if len(lane) < 2:
        return None
    instruction = lane.pop(rng.randrange(len(lane)))
    lane.insert(rng.randrange(len(lane) + 1), instruction)
    return with_lanes(program, {v: lane})


def repeat_a_run(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let an rTask run twice a step."""
    v = rng.randrange(len(program.lanes))
    runs = [i for _, _, i in program.instructions() if isinstance(i, Run)]
    return with_lanes(program, {v: [*program.lanes[v], replace(rng.choice(runs), count=1)]})


MUTATIONS = (
    drop_a_wait, drop_a_signal, signal_another, wait_for_another, swap_instructions, move_a_run, other_back,
    one_event_for_two_lanes, other_place, other_steps, other_count, no_first, shared_memory, move_within_a_lane,
    repeat_a_run,
)  # fmt: skip


@SEEDS
@COUNTED
def test_no_illegal_mutant_of_a_loop_is_accepted(seed, counted):
    plans = (planned(1000 * seed + n, counted=counted) for n in range(6 if counted else 25))
    assert count_illegal(plans, MUTATIONS) > (100 if counted else 300)


def count_illegal(plans: Iterable[tuple[RGraph, RProgram]], mutations: Sequence[Mutation]) -> int:
    """How many mutants of some plans are illegal, none of which is accepted."""
    illegal = 0
    for n, (graph, program) in enumerate(plans):
        rng = random.Random(n)
        for mutate in mutations:
            for mutant in filter(None, (mutate(program, rng) for _ in range(3))):
                right = is_right(mutant, graph)
                assert right or not is_accepted(mutant, graph), (n, mutate.__name__, mutant)
                illegal += not right
    return illegal


@SEEDS
def test_a_run_of_fewer_steps_is_a_loop_of_so_many(seed):
    """What is left behind at the beginning of each result is that of the loop that was made for so many steps; of what
    goes backward, too."""
    for n in range(20):
        open_graph, _ = loop_graph(random.Random(1000 * seed + n), counted=True)
        for steps in range(1, open_graph.steps + 1):
            graph, _ = loop_graph(random.Random(1000 * seed + n), steps=steps)
            wanted, found = data_flow(graph), data_flow(of_run(open_graph, steps))
            for name, value in wanted.items():
                place = next(b.place for b in graph.buffers if b.place and graph.buffers[b.place.base].name == name)
                if place.phases:  # in a ring the last state alone is what a loop leaves behind
                    half, last, fixed = len(value) // 2, steps % 2, open_graph.steps % 2
                    assert value[last * half :][:half] == found[name][fixed * half :][:half]
                else:
                    assert value == found[name][: len(value)]
