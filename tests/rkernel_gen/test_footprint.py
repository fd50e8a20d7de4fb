"""Footprints against what the rTasks of small kernels really touch, and what is to be expected of them."""

import math

import pytest
from tvm import tirx
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import fused
from tests.marks import one_in
from tvm_rammer.device import preset
from tvm_rammer.ir import Buffer, Footprint, RGraph, ROperator
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen import make_kernels
from tvm_rammer.rkernel_gen.footprint.footprint import covers, footprints_of

from .touched import touched

OPERATORS = {
    "elements": ([(2, 5, 7, 7), (2, 5, 7, 7)], lambda x, y: op.nn.relu(op.add(x, y))),
    "broadcast": ([(1, 6, 8, 8), (1, 6, 1, 1)], lambda x, y: op.multiply(x, y)),
    "conv 3x3, padded": ([(1, 3, 9, 9), (8, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "conv 3x3, stride 2": ([(1, 3, 11, 11), (8, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, strides=2, padding=1)),
    "conv 1x1, bias": (
        [(1, 4, 7, 7), (16, 4, 1, 1), (1, 16, 1, 1)],
        lambda x, w, b: op.nn.relu(op.add(op.nn.conv2d(x, w), b)),
    ),
    "conv 1x1, another image is added": (
        [(1, 4, 7, 7), (16, 4, 1, 1), (1, 16, 7, 7)], lambda x, w, z: op.add(op.nn.conv2d(x, w), z),
    ),
    "conv 3x3, another image is added": (
        [(1, 4, 9, 7), (16, 4, 3, 3), (1, 16, 9, 7)], lambda x, w, z: op.add(op.nn.conv2d(x, w, padding=1), z),
    ),
    "conv, batch 2, dilated": ([(2, 3, 8, 8), (4, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, dilation=2, padding=2)),
    "conv 3x3, filters in vectors": (
        [(1, 3, 7, 9), (20, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, strides=2, padding=1),
    ),
    "conv 3x3 by Winograd's algorithm": (
        [(1, 8, 11, 30), (16, 8, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1),
    ),
    "conv 1x1, filters in vectors": ([(1, 6, 5, 5), (18, 6, 1, 1)], lambda x, w: op.nn.conv2d(x, w)),
    "weights of run time": (
        [(1, 3, 7, 9), (5, 3, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1),
    ),
    "conv, transposed, groups": (
        [(1, 4, 5, 5), (4, 2, 3, 3)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2, groups=2),
    ),
    "conv, depthwise": ([(1, 8, 6, 6), (8, 1, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1, groups=8)),
    "conv, groups": ([(1, 8, 6, 6), (8, 4, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1, groups=2)),
    "matmul": ([(24, 16), (16, 40)], op.matmul),
    "batched matmul": ([(2, 6, 8), (2, 8, 12)], op.matmul),
    "matrix times vector": ([(1, 40), (40, 64)], op.matmul),
    "max pool": ([(1, 4, 13, 13)], lambda x: op.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))),
    "average pool": ([(1, 4, 9, 9)], lambda x: op.nn.avg_pool2d(x, (2, 2), (2, 2))),
    "global pool": ([(1, 8, 7, 7)], lambda x: op.mean(x, [2, 3])),
    "softmax": ([(6, 40)], op.nn.softmax),
    "concat": ([(1, 3, 6, 6), (1, 5, 6, 6)], lambda x, y: op.concat([x, y], 1)),
    "transpose, extents that no vector divides": ([(9, 5, 7)], lambda x: op.permute_dims(x, [1, 2, 0])),
    "transpose": ([(1, 6, 5, 4)], lambda x: op.permute_dims(x, [0, 2, 3, 1])),
    "shuffle": (
        [(1, 6, 4, 4)],
        lambda x: op.reshape(op.permute_dims(op.reshape(x, [1, 2, 3, 4, 4]), [0, 2, 1, 3, 4]), [1, 6, 4, 4]),
    ),
    "slice": ([(1, 8, 6, 6)], lambda x: op.strided_slice(x, [1], [2], [6])),
    "scalar": ([(12, 9)], lambda x: op.sum(x)),
}  # fmt: skip


def kernels_of(name: str, target: str) -> tuple[ScheduledKernel, ...]:
    """All tilings of an operator whose second and later parameters are constants, as weights are."""
    shapes, build = OPERATORS[name]
    func = fused(shapes, build)
    constants = name.startswith("conv")
    buffers = [
        Buffer(p.name, tuple(int(s) for s in p.shape), "float32", "constant" if constants and n else "input")
        for n, p in enumerate(func.params)
    ]
    last = len(buffers) - 1
    graph = RGraph("g", tuple(buffers), (ROperator("o", "f", tuple(range(last)), (last,)),))
    return make_kernels([graph], {"f": func}, preset(target)).kernels["f"]


def linear(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    place = 0
    for i, size in zip(index, shape, strict=True):
        place = place * size + i
    return place


def split(place: int, view: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(view):
        place, i = divmod(place, size)
        index.append(i)
    return tuple(reversed(index))


def assert_covers(func: tirx.PrimFunc, num_rtasks: int) -> tuple[Footprint | None, ...]:
    """Each footprint covers all that each rTask touches."""
    footprints = footprints_of(func, num_rtasks)
    really = touched(func, num_rtasks)
    for param, footprint in zip(func.params, footprints, strict=True):
        if footprint is None:
            continue
        shape = tuple(int(s) for s in param.shape)
        assert math.prod(footprint.radices) == num_rtasks
        for rtask, found in enumerate(really):
            box = footprint.box(rtask)
            for index in found[param.name]:
                place = split(linear(index, shape), footprint.view or shape)
                assert all(low <= i < high for i, (low, high) in zip(place, box, strict=True)), (param, rtask, index)
    return footprints


@pytest.mark.parametrize("target", ["cpu", "cuda:h200"])
@pytest.mark.parametrize("name", one_in(3, sorted(OPERATORS)))
def test_footprints_cover_what_rtasks_touch(name: str, target: str) -> None:
    kernels = kernels_of(name, target)
    assert kernels or target != "cpu"
    for kernel in kernels:
        assert None not in assert_covers(kernel.func, kernel.spec.num_rtasks)


def written(func: tirx.PrimFunc, num_rtasks: int) -> Footprint:
    footprint = assert_covers(func, num_rtasks)[-1]
    assert footprint is not None
    return footprint


def test_rows_with_a_halo() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((16, 8), "float32"), y: T.Buffer((16, 8), "float32")) -> None:
        for r in T.parallel(8):
            for i, j in T.grid(2, 8):
                y[r * 2 + i, j] = T.if_then_else(
                    r * 2 + i >= 1, x[r * 2 + i - 1, j], T.float32(0)
                ) + T.if_then_else(r * 2 + i < 15, x[r * 2 + i + 1, j], T.float32(0))  # fmt: skip

    read, write = assert_covers(func, 8)
    assert read == Footprint((8,), (-1, 0), ((2,), (0,)), (4, 8))
    assert write == Footprint((8,), (0, 0), ((2,), (0,)), (2, 8))


def test_a_tile_of_two_digits() -> None:
    @T.prim_func(s_tir=True)
    def func(y: T.Buffer((6, 20), "float32")) -> None:
        for t in T.parallel(15):
            for i, j in T.grid(2, 4):
                y[t // 5 * 2 + i, t % 5 * 4 + j] = T.float32(1)

    assert written(func, 15) == Footprint((3, 5), (0, 0), ((2, 0), (0, 4)), (2, 4))


def test_of_block_indices_x_is_the_fastest() -> None:
    @T.prim_func(s_tir=True)
    def func(y: T.Buffer((3, 20), "float32")) -> None:
        for b in T.thread_binding(3, "blockIdx.y"):
            for a in T.thread_binding(5, "blockIdx.x"):
                for t in T.thread_binding(4, "threadIdx.x"):
                    y[b, a * 4 + t] = T.float32(1)

    assert written(func, 15) == Footprint((3, 5), (0, 0), ((1, 0), (0, 4)), (1, 4))


def test_elements_dealt_out_in_one_row() -> None:
    @T.prim_func(s_tir=True)
    def func(y: T.Buffer((3, 5, 7), "float32")) -> None:
        for t in T.parallel(7):
            for i in T.serial(16):
                with T.sblock("y"):
                    a = T.axis.spatial(3, (t * 16 + i) // 35)
                    b = T.axis.spatial(5, (t * 16 + i) % 35 // 7)
                    c = T.axis.spatial(7, (t * 16 + i) % 7)
                    T.where(t * 16 + i < 105)
                    y[a, b, c] = T.float32(1)

    assert written(func, 7) == Footprint((7,), (0,), ((16,),), (16,), view=(105,))


def test_an_index_that_runs_on_into_the_next_rows() -> None:
    @T.prim_func(s_tir=True)
    def func(y: T.Buffer((2, 4, 5), "float32")) -> None:
        for t in T.parallel(4):
            for i in T.serial(10):
                y[t // 2, 0, t % 2 * 10 + i] = T.float32(1)

    footprint = written(func, 4)
    assert footprint == Footprint((2, 2), (0, 0, 0), ((1, 0), (0, 2), (0, 0)), (1, 2, 5))


def test_a_last_tile_moved_back() -> None:
    @T.prim_func(s_tir=True)
    def func(y: T.Buffer((10,), "float32")) -> None:
        for t in T.parallel(3):
            for i in T.serial(4):
                y[T.min(t * 4, 6) + i] = T.float32(1)

    footprint = written(func, 3)
    assert footprint.extents[0] < 10


def test_rtasks_that_touch_nothing_have_no_box_within_the_buffer() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((4,), "float32"), y: T.Buffer((8,), "float32")) -> None:
        for t in T.parallel(8):
            y[t] = T.if_then_else(t < 4, x[t], T.float32(0))

    read, _ = assert_covers(func, 8)
    assert read == Footprint((8,), (0,), ((1,),), (1,))


def test_data_as_an_index_may_lead_anywhere() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((9, 4), "float32"), i: T.Buffer((8,), "int32"), y: T.Buffer((8, 4), "float32")) -> None:
        for t in T.parallel(8):
            for j in T.serial(4):
                y[t, j] = x[i[t], j]

    table, index, _ = footprints_of(func, 8)
    assert table == Footprint((8,), (0, 0), ((0,), (0,)), (9, 4))
    assert index == Footprint((8,), (0,), ((1,),), (1,))


def test_guards_on_different_data_do_not_cancel() -> None:
    @T.prim_func(s_tir=True)
    def func(i: T.Buffer((8,), "int32"), y: T.Buffer((8,), "float32")) -> None:
        for t in T.parallel(2):
            if i[t] - i[t + 2] < 1:
                y[t + 4 * (i[t] - i[t + 1])] = T.float32(1)

    assert footprints_of(func, 2)[1] == Footprint((2,), (0,), ((0,),), (8,))


def test_pointers_and_other_names_hide_a_buffer() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32"), z: T.Buffer((8,), "float32")) -> None:
        for t in T.parallel(8):
            T.evaluate(T.call_extern("int32", "f", T.address_of(x[t]), z.data))
            y[t] = T.float32(1)

    assert footprints_of(func, 8) == (None, Footprint((8,), (0,), ((1,),), (1,)), None)


def test_a_select_reads_both_sides() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")) -> None:
        for t in T.parallel(4):
            y[t] = T.Select(t < 2, x[t], x[t + 4])

    read, _ = assert_covers(func, 4)
    assert read == Footprint((4,), (0,), ((1,),), (5,))


def test_unknown_code_proves_nothing() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((8,), "float32")) -> None:
        for t in T.parallel(8):
            while x[t] > T.float32(0):
                x[t] = x[t] - T.float32(1)

    assert footprints_of(func, 8) == (None,)


def test_what_nobody_asks_about_is_left_out() -> None:
    kernel = kernels_of("conv 1x1, bias", "cpu")[0]
    data, weight, bias, result = footprints_of(kernel.func, kernel.spec.num_rtasks)
    assert weight is not None and bias is not None
    assert footprints_of(kernel.func, kernel.spec.num_rtasks, skip={1, 2}) == (data, None, None, result)
    assert kernel.spec.footprints == (data, None, None, result)


def test_boxes_that_are_fewer_than_the_elements_leave_some_out():
    rows = Footprint((4,), (0, 0), ((2,), (0,)), (2, 9))
    assert covers(rows, 4, (8, 9)) and covers(rows, 4, (7, 9)) and covers(None, 4, (9, 9))
    assert not covers(rows, 4, (9, 9)) and not covers(rows, 4, (8, 10))
    assert covers(Footprint((2,), (0,), ((36,),), (36,), view=(72,)), 2, (8, 9))


WIDE = 1 << 23
"""Extent of a row: a multiple of it of an unknown index leaves 64 bits where unknown is a large number."""


def _read_of(func: tirx.PrimFunc) -> Footprint | None:
    return footprints_of(func, 4)[0]


def test_an_unknown_index_of_a_wide_row_may_touch_everything() -> None:
    @T.prim_func(s_tir=True)
    def positive(x: T.Buffer((4, WIDE), "float32"), n: T.Buffer((4,), "int32"), y: T.Buffer((4, 8), "float32")) -> None:
        for r in T.parallel(4):
            for i in range(8):
                y[r, i] = x[T.max(0, n[r]), i]

    @T.prim_func(s_tir=True)
    def halved(x: T.Buffer((4, WIDE), "float32"), n: T.Buffer((4,), "int32"), y: T.Buffer((4, 8), "float32")) -> None:
        for r in T.parallel(4):
            for i in range(8):
                y[r, i] = x[n[r] // 2, i]

    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((4, WIDE), "float32"), n: T.Buffer((4,), "int32"), y: T.Buffer((4, 8), "float32")) -> None:
        for r in T.parallel(4):
            for i in range(8):
                y[r, i] = x[n[r], i]

    for func in (positive, halved, plain):
        assert _read_of(func) == Footprint((4,), (0, 0), ((0,), (0,)), (4, 8))


def test_an_unknown_summand_is_not_bounded_by_a_large_one() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((16,), "float32"), n: T.Buffer((4,), "int64"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(4):
            y[r] = x[n[r] + T.int64(1 << 45) - T.int64(1 << 45) * T.max(T.int64(1), n[r])]

    assert _read_of(func) == Footprint((4,), (0,), ((0,),), (16,))


def test_huge_buffers_and_numbers() -> None:
    @T.prim_func(s_tir=True)
    def func(
        x: T.Buffer((1 << 22, 1 << 22, 1 << 22), "float32"), n: T.Buffer((4,), "int64"), y: T.Buffer((4,), "float32")
    ) -> None:
        for r in T.parallel(4):
            y[r] = x[n[r] * T.int64(1 << 62), n[r] // T.int64(1 << 62), n[r] % T.int64(1 << 62)]

    size = 1 << 22
    assert _read_of(func) == Footprint((4,), (0, 0, 0), ((0,), (0,), (0,)), (size, size, size))


def test_kernels_of_millions_of_rtasks_have_no_footprints() -> None:
    @T.prim_func(s_tir=True)
    def func(y: T.Buffer((1 << 24,), "float32")) -> None:
        for r in T.parallel(1 << 24):
            y[r] = T.float32(1)

    assert footprints_of(func, 1 << 24) == (None,)


def test_a_number_that_its_type_cannot_hold_is_another_one() -> None:
    @T.prim_func(s_tir=True)
    def wrapped(x: T.Buffer((256,), "float32"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(4):
            y[r] = x[T.Cast("int32", T.Cast("uint8", r - 1))]

    @T.prim_func(s_tir=True)
    def subtracted(x: T.Buffer((256,), "float32"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(4):
            y[r] = x[T.Cast("int32", T.Cast("uint8", r) - T.uint8(1))]

    @T.prim_func(s_tir=True)
    def held(x: T.Buffer((256,), "float32"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(4):
            y[r] = x[T.Cast("int64", T.Cast("int8", r * 2))]

    everything = Footprint((4,), (0,), ((0,),), (256,))
    assert _read_of(wrapped) == _read_of(subtracted) == everything
    assert _read_of(held) == Footprint((4,), (0,), ((2,),), (1,))


def test_the_same_index_in_another_scope_is_another_access() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((40,), "float32"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(4):
            for i in T.serial(10):
                if i < 2:
                    y[r] = x[r * 10 + i]
                if i >= 4 and i < 7:
                    y[r] = x[r * 10 + i]

    assert _read_of(func) == Footprint((4,), (0,), ((10,),), (7,))


def test_one_variable_may_be_that_of_two_loops() -> None:
    x, y = (tirx.decl_buffer((n,), "float32", name) for n, name in ((40, "x"), (4, "y")))
    r, i = tirx.Var("r", "int32"), tirx.Var("i", "int32")
    read = tirx.BufferStore(y, tirx.BufferLoad(x, [r * 10 + i]), [r])
    loops = tirx.SeqStmt([tirx.For(i, 0, n, tirx.ForKind.SERIAL, read) for n in (2, 7)])
    body = tirx.For(r, 0, 4, tirx.ForKind.PARALLEL, loops)
    assert _read_of(tirx.PrimFunc([x, y], body)) == Footprint((4,), (0,), ((10,),), (7,))
