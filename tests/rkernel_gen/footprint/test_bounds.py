"""Footprints where indices are unknown, or where numbers are larger than their types hold."""

from tvm import tirx
from tvm.script import tirx as T

from tvm_rammer.ir import Footprint
from tvm_rammer.rkernel_gen.footprint.footprint import footprints_of

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
