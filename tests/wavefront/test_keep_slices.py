"""Which slices of weights the vEUs of a loop keep: those that fit, the largest first; wrong ones are refused."""

from dataclasses import replace

import pytest

from tvm_rammer.device import preset
from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Buffer, Footprint, Place, RGraph, RKernel, ROperator, RProgram, Run, Slices
from tvm_rammer.wavefront import CostModel, schedule_loop, simulate, verify
from tvm_rammer.wavefront.keep_slices import keep_slices

from .graphs import DEVICE

STEPS, SIZE = 6, 1024
GPU = preset("cuda:h200")
LARGE, SMALL = 4096, 1024
PART = Footprint((4,), (0,), ((SIZE // 4,),), (SIZE // 4,))
KERNELS = {
    "f": [RKernel("k_f", "f", 4, 2.0, threads=32, footprints=(None, None, PART), slices=Slices(1, LARGE, 0.5))],
    "g": [RKernel("k_g", "g", 4, 1.0, threads=32, footprints=(None, None, PART), slices=Slices(1, SMALL, 0.5))],
}
BUFFERS = (
    Buffer("w", (4 * LARGE,), "int8", "constant"),
    Buffer("u", (4 * SMALL,), "int8", "constant"),
    Buffer("start", (SIZE,), "int8", "input"),
    Buffer("t", (SIZE,), "int8", "intermediate"),
    Buffer("ys", (STEPS * SIZE,), "int8", "output"),
    Buffer("before", (SIZE,), "int8", "view", Place(4, 0, SIZE, -1)),
    Buffer("y", (SIZE,), "int8", "view", Place(4, 0, SIZE)),
    Buffer("v", (4 * LARGE,), "int8", "constant"),
)
LOOP = RGraph(
    "loop", BUFFERS, (ROperator("o0", "f", (5, 0), (3,), (2, 0)), ROperator("o1", "g", (3, 1), (6,))), STEPS
)  # fmt: skip


def device(units, shared):
    """A GPU of few units, whose blocks have so much shared memory."""
    return replace(GPU, units=units, shared_per_block=shared, unit_bytes=shared + 1024)


def planned(shared, units=2, graph=LOOP) -> RProgram:
    (program,) = schedule_loop(graph, KERNELS, device(units, shared), veus=units)
    return program


def kept(program, lane=0):
    return [(i.operator, i.count, i.kept) for i in program.lanes[lane] if isinstance(i, Run)]


def test_all_slices_are_kept_where_there_is_room():
    program = planned(227 * 1024)
    assert program.kept_bytes == 2 * LARGE + 2 * SMALL
    assert kept(program) == [(0, 2, 0), (1, 2, 2 * LARGE)]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (2 * LARGE + SMALL, [(0, 2, 0), (1, 1, 2 * LARGE), (1, 1, None)]),
        (LARGE + SMALL, [(0, 1, 0), (0, 1, None), (1, 1, LARGE), (1, 1, None)]),
        (SMALL + 128, [(0, 2, None), (1, 1, 0), (1, 1, None)]),
        (SMALL - 128, [(0, 2, None), (1, 2, None)]),
    ],
)
def test_the_largest_are_kept_as_far_as_they_fit(room, expected):
    assert kept(planned(room)) == expected


def test_two_vEUs_of_a_unit_share_its_memory():
    four = replace(device(2, 64 * 1024), unit_bytes=2 * (LARGE + SMALL + 1024))
    (program,) = schedule_loop(LOOP, KERNELS, four, veus=4)
    assert len(program.lanes) == 4 and program.kept_bytes == LARGE + SMALL


def test_the_arena_of_the_rtasks_comes_first():
    kernels = {name: [replace(k, shared_bytes=1000) for k in made] for name, made in KERNELS.items()}
    (program,) = schedule_loop(LOOP, kernels, device(2, 2 * LARGE + 2 * SMALL + 1023), veus=2)
    assert program.kept_bytes == 2 * LARGE + SMALL


def test_what_is_another_in_step_0_is_not_kept():
    first = replace(LOOP.operators[0], first=(2, 7))
    program = planned(227 * 1024, graph=replace(LOOP, operators=(first, LOOP.operators[1])))
    assert kept(program) == [(0, 2, None), (1, 2, 0)]


def test_a_cpu_keeps_nothing_of_its_own():
    (program,) = schedule_loop(LOOP, KERNELS, replace(DEVICE, kind="cpu"), veus=2)
    assert not program.kept_bytes


def test_rtasks_that_are_no_neighbours_keep_their_slices_one_by_one():
    program = planned(512)
    lanes = tuple(
        tuple(replace(i, start=0, step=2) if isinstance(i, Run) else i for i in lane) for lane in program.lanes
    )
    again = keep_slices(replace(program, lanes=lanes), device(2, 2 * LARGE + SMALL + 512))
    runs = [(i.operator, i.start, i.count, i.step, i.kept) for i in again.lanes[0] if isinstance(i, Run)]
    assert runs == [(0, 0, 1, 1, 0), (0, 2, 1, 1, LARGE), (1, 0, 1, 1, 2 * LARGE), (1, 2, 1, 1, None)]


def test_rtasks_whose_slices_are_kept_take_less_time():
    cost = CostModel()
    times = [simulate(planned(shared), cost).makespan_us for shared in (227 * 1024, 2 * LARGE, 512)]
    assert times == [STEPS * 3.0, STEPS * 4.0, STEPS * 6.0]


def change(program, lane, at, **fields):
    lanes = [list(instructions) for instructions in program.lanes]
    runs = [n for n, i in enumerate(lanes[lane]) if isinstance(i, Run)]
    lanes[lane][runs[at]] = replace(lanes[lane][runs[at]], **fields)
    return replace(program, lanes=tuple(map(tuple, lanes)))


def of_kernels(program, **fields):
    first, second = program.kernels
    return replace(program, kernels=(replace(first, **fields), second))


WRONG = {
    "over another": (lambda p: change(p, 0, 1, kept=2 * LARGE - SMALL), "same bytes, at 7168"),
    "before the beginning": (lambda p: change(p, 1, 0, kept=-LARGE), "at byte -4096"),
    "odd byte": (lambda p: change(p, 0, 1, kept=2 * LARGE + 8), "multiples of 16"),
    "odd slices": (lambda p: of_kernels(p, slices=Slices(1, 1000, 0.5)), "multiples of 16"),
    "no slices": (lambda p: of_kernels(p, slices=None), "no slices"),
    "of an input": (lambda p: of_kernels(p, slices=Slices(0, LARGE, 0.5)), "parameter 0 of 'o0' is no constant"),
    "of the result": (lambda p: of_kernels(p, slices=Slices(2, LARGE, 0.5)), "parameter 2 of 'o0' is no constant"),
    "too many": (lambda p: of_kernels(p, shared_bytes=227 * 1024 - 2 * LARGE), "only 0 vEUs can be resident"),
    "too far": (lambda p: change(p, 0, 0, kept=227 * 1024), "only 0 vEUs can be resident"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_kept_wrong_is_refused(wrong):
    program = planned(227 * 1024)
    verify(program, device=device(2, 227 * 1024))
    broken, message = WRONG[wrong]
    with pytest.raises(VerificationError, match=message):
        verify(broken(program), device=device(2, 227 * 1024))


def test_slices_of_rtasks_that_are_no_neighbours_are_refused():
    program = planned(227 * 1024)
    lanes = [
        tuple(replace(i, start=v, step=2) if isinstance(i, Run) and i.operator == 1 else i for i in lane)
        for v, lane in enumerate(program.lanes)
    ]
    with pytest.raises(VerificationError, match="every 2-th rTask of 'o1' are no neighbours"):
        verify(replace(program, lanes=tuple(lanes)))


def test_another_constant_in_step_0_is_refused():
    program = planned(227 * 1024)
    w = [b.name for b in program.graph.buffers].index("u")
    op = program.graph.operators[0]
    graph = replace(program.graph, operators=(replace(op, first=(op.first[0], w)), program.graph.operators[1]))
    with pytest.raises(VerificationError, match="another parameter 1 in step 0"):
        verify(replace(program, graph=graph))


def test_a_device_without_such_memory_is_refused():
    with pytest.raises(VerificationError, match="has no memory for that"):
        verify(planned(227 * 1024), device=replace(DEVICE, kind="cpu"))
