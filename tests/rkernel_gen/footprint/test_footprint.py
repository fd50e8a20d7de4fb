"""Footprints of small functions: as expected, and no smaller than what their rTasks really touch."""

import pytest
from tvm import tirx
from tvm.script import tirx as T

from tvm_rammer.ir import Footprint
from tvm_rammer.rkernel_gen.footprint.footprint import covers, footprints_of

from .touched import assert_covers


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


def test_boxes_that_are_fewer_than_the_elements_leave_some_out():
    rows = Footprint((4,), (0, 0), ((2,), (0,)), (2, 9))
    assert covers(rows, 4, (8, 9)) and covers(rows, 4, (7, 9)) and covers(None, 4, (9, 9))
    assert not covers(rows, 4, (9, 9)) and not covers(rows, 4, (8, 10))
    assert covers(Footprint((2,), (0,), ((36,),), (36,), view=(72,)), 2, (8, 9))


def test_the_same_index_in_another_scope_is_another_access() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((40,), "float32"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(4):
            for i in T.serial(10):
                if i < 2:
                    y[r] = x[r * 10 + i]
                if i >= 4 and i < 7:
                    y[r] = x[r * 10 + i]

    assert footprints_of(func, 4)[0] == Footprint((4,), (0,), ((10,),), (7,))


def test_one_variable_may_be_that_of_two_loops() -> None:
    x, y = (tirx.decl_buffer((n,), "float32", name) for n, name in ((40, "x"), (4, "y")))
    r, i = tirx.Var("r", "int32"), tirx.Var("i", "int32")
    read = tirx.BufferStore(y, tirx.BufferLoad(x, [r * 10 + i]), [r])
    loops = tirx.SeqStmt([tirx.For(i, 0, n, tirx.ForKind.SERIAL, read) for n in (2, 7)])
    body = tirx.For(r, 0, 4, tirx.ForKind.PARALLEL, loops)
    assert footprints_of(tirx.PrimFunc([x, y], body), 4)[0] == Footprint((4,), (0,), ((10,),), (7,))


def test_sums_of_several_rtasks_are_found() -> None:
    @T.prim_func(s_tir=True)
    def func(x: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")) -> None:
        for r in T.parallel(2):
            for i in range(4):
                y[i] = y[i] + x[r * 4 + i]

    with pytest.raises(AssertionError, match=r"rTask 0 reads y\(0,\), which others write"):
        assert_covers(func, 2)
