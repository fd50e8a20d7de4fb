"""Copies within a step of a loop, from a slot or to one: which placement avoids, and that a wrong one is refused."""

from dataclasses import replace

import pytest

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Buffer, Move, Place, RGraph, RKernel, ROperator, TripCount
from tvm_rammer.wavefront import schedule_loop, verify_sequence
from tvm_rammer.wavefront.views import place_views

from .graphs import DEVICE

CPU = replace(DEVICE, kind="cpu")
STEPS, SIZE = 6, 64
COPIES = {"copy": (Move(0, 0, 0, 0, SIZE),)}
KERNELS = {name: [RKernel(f"k_{name}", name, 1, 1.0)] for name in ("copy", "f", "g")}


def buffer(name, kind, steps=1, place=None):
    return Buffer(name, (steps * SIZE,), "int8", kind, place)


BUFFERS = (
    buffer("xs", "input", STEPS),
    buffer("ys", "output", STEPS),
    buffer("x", "view", place=Place(0, (STEPS - 1) * SIZE, -SIZE)),
    buffer("flat", "intermediate"),
    buffer("t", "intermediate"),
    buffer("y", "view", place=Place(1, 0, SIZE)),
    buffer("ring", "intermediate", 2),
    buffer("after", "view", place=Place(6, 0, SIZE, 1, 2)),
    buffer("before", "view", place=Place(6, 0, SIZE, 0, 2)),
    buffer("start", "input"),
)


def of(*operators, steps=STEPS):
    names = [b.name for b in BUFFERS]

    def operator(number, text):
        function, inputs, output, *first = text.split()
        read = tuple(map(names.index, inputs.split(",")))
        at_first = tuple(names.index(n) for n in first[0].split(",")) if first else ()
        return ROperator(f"o{number}", function, read, (names.index(output),), at_first)

    made = tuple(operator(n, text) for n, text in enumerate(operators))
    return RGraph("loop", BUFFERS, made, steps).subgraph(range(len(made)), "loop")


def test_slots_are_read_and_written_where_they_are():
    graph = of("copy x flat", "f flat t", "copy t y")
    (program,) = schedule_loop(graph, KERNELS, CPU, veus=2, copies=COPIES)
    (op,) = program.graph.operators
    read, written = (program.graph.buffers[b].place for b in (*op.inputs, *op.outputs))
    assert (read.offset, read.stride) == ((STEPS - 1) * SIZE, -SIZE) and (written.offset, written.stride) == (0, SIZE)


@pytest.mark.parametrize(
    "change", [{"ahead": 1}, {"stride": 2 * SIZE}, {"from_end": True}, {"phases": 2}, {"offset": 8}]
)
def test_a_slot_elsewhere_is_refused(change):
    graph = of("copy x flat", "f flat t", "copy t y")
    (program,) = schedule_loop(graph, KERNELS, CPU, veus=1, copies=COPIES)
    for name in ("flat", "t"):
        buffers = tuple(
            replace(b, place=replace(b.place, **change)) if b.name == name else b for b in program.graph.buffers
        )
        moved = replace(program, graph=replace(program.graph, buffers=buffers))
        with pytest.raises(VerificationError):
            verify_sequence(graph, [moved], COPIES)


def test_a_state_may_be_made_where_it_is_handed_on():
    graph = of("f before,x t start,x", "copy t after", "g after y")
    (program,) = schedule_loop(graph, KERNELS, CPU, veus=2, copies=COPIES)
    assert [op.function for op in program.graph.operators] == ["f", "g"]


def test_the_state_before_stays_until_it_is_read():
    """Who reads a slot before the copy that writes it wants what was there two steps before."""
    graph = of("f before,x t start,x", "g after flat start", "copy t after", "copy flat y")
    left = place_views(graph, COPIES)
    assert [op.name for op in left.operators] == ["o0", "o1", "o2"]
    sooner = replace(graph, operators=tuple(graph.operators[n] for n in (0, 2, 1, 3)))
    (program,) = schedule_loop(sooner, KERNELS | {"g": KERNELS["g"]}, CPU, veus=1, copies=COPIES)
    with pytest.raises(VerificationError, match="reads what it would overwrite"):
        verify_sequence(graph, [program], COPIES)


@pytest.mark.parametrize("device", [CPU, DEVICE], ids=["cpu", "cuda"])
def test_an_input_says_how_many_steps_there_are(device):
    graph = of("f x y")
    buffers = (*graph.buffers, Buffer("n", (1,), "int32", "input"))
    (program,) = schedule_loop(
        replace(graph, buffers=buffers, trip_count=TripCount(len(buffers) - 1)), KERNELS, device, veus=1
    )
    assert program.steps == STEPS and program.graph.trip_count


def test_slots_on_a_gpu_begin_where_vectors_do():
    """A number is as long as its slot, and has one anywhere; what is 96 bytes long has vectors."""

    def slots(nbytes):
        xs, ys = (Buffer(name, (STEPS * nbytes,), "int8", kind) for name, kind in (("xs", "input"), ("ys", "output")))
        x, y = (Buffer(name, (nbytes,), "int8", "view", Place(base, 0, nbytes)) for base, name in enumerate("xy"))
        graph = RGraph("loop", (xs, ys, x, y), (ROperator("o", "f", (2,), (3,)),), STEPS)
        return schedule_loop(graph, KERNELS, DEVICE, veus=1)

    for nbytes in (1, 4, 8, 64, 128):
        assert slots(nbytes)
    for nbytes in (3, 12, 96):
        with pytest.raises(VerificationError, match="multiples of"):
            slots(nbytes)
