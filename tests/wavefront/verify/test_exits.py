"""Loops that end when a step says so: their plans are right, and no mutant that is not is accepted."""

import random
from dataclasses import replace

import pytest

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Buffer, Place, RGraph, RProgram, Run, Signal, TripCount, Wait
from tvm_rammer.wavefront import CostModel, schedule_loop, verify

from ..graphs import DEVICE, FREE, SYNC_COSTS
from ..loop_graphs import loop_graph
from ..loop_judge import is_right
from .mutants import Mutation, with_lanes
from .test_loops import CPU, MUTATIONS, SEEDS, count_illegal


def planned(seed: int) -> tuple[RGraph, RProgram]:
    """A random loop with a condition, and its plan, verified by `schedule_loop`."""
    rng = random.Random(seed)
    graph, kernels = loop_graph(rng, conditional=True)
    cost = rng.choice([FREE, FREE, SYNC_COSTS, CostModel(signal_us=0.01)])
    (program,) = schedule_loop(graph, kernels, CPU, veus=rng.randint(1, 4), cost=cost)
    return graph, program


@SEEDS
def test_plans_are_right(seed):
    several = 0
    for n in range(30):
        graph, program = planned(1000 * seed + n)
        assert is_right(program, graph), (seed, n)
        several += len(program.lanes) > 1
    assert several > 3


def other_exit(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let lanes leave at the waits for another event, or at none."""
    return replace(program, exit=rng.choice([None, program.num_events, *range(program.num_events)]))


def stay(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a lane not look whether it is to leave."""
    v = rng.randrange(len(program.lanes))
    return with_lanes(program, {v: program.lanes[v][:-1]}) if program.lanes[v] else None


def leave_early(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a lane leave before it has done its step, or look at the condition of the step before."""
    v = rng.randrange(len(program.lanes))
    lane = list(program.lanes[v])
    if len(lane) < 2:
        return None
    last = lane.pop()
    if rng.random() < 0.5:
        return with_lanes(program, {v: [*lane, replace(last, back=1)]})
    lane.insert(rng.randrange(len(lane)), last)
    return with_lanes(program, {v: lane})


def tell_early(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let the condition be told before it is computed, or by a lane that does not compute it."""
    v, n = next((v, n) for v, n, i in program.instructions() if isinstance(i, Signal) and i.event == program.exit)
    lane = list(program.lanes[v])
    signal = lane.pop(n)
    told = with_lanes(program, {v: lane})
    u = rng.randrange(len(program.lanes))
    return with_lanes(told, {u: [signal, *told.lanes[u]]})


def tell_twice(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let two lanes tell it."""
    u = rng.randrange(len(program.lanes))
    told = with_lanes(program, {u: [Signal(program.exit or 0), *program.lanes[u]]})
    doubled = [
        [replace(i, arrivals=2) if isinstance(i, Wait) and i.event == program.exit else i for i in lane]
        for lane in told.lanes
    ]
    return replace(told, lanes=tuple(map(tuple, doubled)))


def another_condition(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let another buffer say it, or none."""
    others = [b for b in range(len(program.graph.buffers)) if b != program.graph.condition]
    return replace(program, graph=replace(program.graph, condition=rng.choice([None, *others])))


EXITS: tuple[Mutation, ...] = (
    other_exit, stay, leave_early, tell_early, tell_twice, another_condition, *MUTATIONS,
)  # fmt: skip


@SEEDS
def test_no_illegal_mutant_is_accepted(seed):
    assert count_illegal((planned(1000 * seed + n) for n in range(15)), EXITS) > 300


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "int8"}, {"shape": (2,)}, {"place": Place(0, 0, 1, 1)}, {"place": Place(0, 0, 1, 0, 2)}],
    ids=["another type", "two values", "a slot ahead", "slots in turn"],
)
def test_a_condition_that_is_none_is_refused(changes):
    _, program = planned(1)
    graph = program.graph
    buffers = list(graph.buffers)
    condition: Buffer = buffers[graph.condition]
    if "place" in changes:
        changes = {"place": replace(changes["place"], base=condition.place.base)}
    buffers[graph.condition] = replace(condition, **changes)
    with pytest.raises(VerificationError, match="must be one truth value"):
        verify(replace(program, graph=replace(graph, buffers=tuple(buffers))))


def test_a_condition_in_several_rtasks_is_refused():
    _, program = planned(2)
    (decides,) = program.graph.deciders()
    kernels = list(program.kernels)
    kernels[decides] = replace(kernels[decides], num_rtasks=2)
    lanes = [
        [replace(i, count=2) if isinstance(i, Run) and i.operator == decides else i for i in lane]
        for lane in program.lanes
    ]
    with pytest.raises(VerificationError, match="one rTask"):
        verify(replace(program, kernels=tuple(kernels), lanes=tuple(map(tuple, lanes))))


def test_a_number_of_steps_and_a_condition_are_refused():
    _, program = planned(2)
    graph = program.graph
    buffers = (*graph.buffers, Buffer("count", (1,), "int32", "input"))
    both = replace(graph, buffers=buffers, trip_count=TripCount(len(graph.buffers)))
    with pytest.raises(VerificationError, match="and so does a condition"):
        verify(replace(program, graph=both))


@pytest.mark.parametrize("device", [CPU, DEVICE], ids=["cpu", "cuda"])
def test_every_device_has_such_loops(device):
    _, program = planned(3)
    verify(program, device=device)
