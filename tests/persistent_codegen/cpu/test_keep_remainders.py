"""Loops over windows of a power of two read what they should, in the widest vectors that LLVM makes of them."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx
from tvm.script import tirx as T

from tests.functions import TARGET
from tvm_rammer.device import host_cpu
from tvm_rammer.persistent_codegen.cpu.keep_remainders import MOST_UNROLLED, keep_remainders

RTASKS, ROWS, COLUMNS = 8, 8, 16


@T.prim_func(s_tir=True)
def windows(x: T.Buffer((8,), "int64"), y: T.Buffer((1024,), "float32"), rtask: T.int32) -> None:
    """Windows of 4 x 4 pixels, whose numbers are compared with each other: a mask of shifted windows."""
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    for r in range(rtask, rtask + 1):
        for i, j in T.grid(8, 16):
            y[r * 128 + i * 16 + j] = T.Cast(
                "float32",
                T.Cast("int64", T.int64(4) <= x[r // 4 * 4 + j // 4]) * T.int64(3)
                + T.Cast("int64", T.int64(6) <= x[r // 4 * 4 + j // 4]) * T.int64(3)
                + T.Cast("int64", T.int64(4) <= x[r % 4 // 2 * 4 + j % 4])
                + T.Cast("int64", T.int64(6) <= x[r % 4 // 2 * 4 + j % 4]),
            ) - T.Cast(
                "float32",
                T.Cast("int64", T.int64(4) <= x[r % 4 // 2 * 4 + i % 4])
                + T.Cast("int64", T.int64(6) <= x[r % 4 // 2 * 4 + i % 4]),
            )


def run(func: tirx.PrimFunc) -> np.ndarray:
    built = tvm.compile(tvm.IRModule({"main": func}), target=TARGET)
    x = tvm.runtime.tensor(np.arange(8))
    y = tvm.runtime.tensor(np.zeros(RTASKS * ROWS * COLUMNS, "float32"))
    for rtask in range(RTASKS):
        built["main"](x, y, rtask)
    return y.numpy().reshape(RTASKS, ROWS, COLUMNS)


def expected() -> np.ndarray:
    r, i, j = np.ogrid[:RTASKS, :ROWS, :COLUMNS]
    part = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    base = r % 4 // 2 * 4
    return 3 * part[r // 4 * 4 + j // 4] + part[base + j % 4] - part[base + i % 4]


def test_windows_are_read_where_they_are() -> None:
    assert np.array_equal(run(keep_remainders(windows)), expected())


def test_remainders_of_quotients_that_are_rounded_to_zero_are_hidden_too() -> None:
    body = tvm_ffi.structural_map(windows.body, (tirx.FloorMod, lambda node: tirx.Mod(node.a, node.b)), order="post")
    rounded = windows.with_body(body)
    assert np.array_equal(run(keep_remainders(rounded)), expected())
    assert not tvm_ffi.structural_equal(keep_remainders(rounded), rounded)


@pytest.mark.skipif(host_cpu().vector_bytes != 64, reason="only with vectors of 64 bytes does LLVM err")
def test_llvm_reads_other_windows_where_it_sees_the_remainders() -> None:
    assert not np.array_equal(run(windows), expected()), "LLVM is mended: keep_remainders can go"


@T.prim_func(s_tir=True)
def other_remainders(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), rtask: T.int32) -> None:
    """Of numbers that are no power of 2, of a vector's elements, and of the rTask's number."""
    for i in range(8):
        y[i] = x[i % 3]
        for j in T.vectorized(8):
            y[i * 8 + j] = x[(i * 8 + j) % 4] + x[rtask % 4]


def test_what_llvm_makes_no_vectors_of_is_left_alone() -> None:
    tvm.ir.assert_structural_equal(keep_remainders(other_remainders), other_remainders)


def rows_of(steps: int) -> tirx.PrimFunc:
    """Sums of pixels whose places outer loops tell, over so many steps of an innermost loop."""

    @T.prim_func(s_tir=True)
    def sums(x: T.Buffer((65536,), "float32"), y: T.Buffer((64,), "float32")) -> None:
        for i in range(64):
            y[i] = T.float32(0)
            for k in range(steps):
                y[i] = y[i] + x[k * 64 + i % 16]

    return sums


def test_a_loop_that_stays_an_outer_one_is_left_alone() -> None:
    """LLVM would compute some such places as one vector, and take it apart in each step of the innermost loop."""
    tvm.ir.assert_structural_equal(keep_remainders(rows_of(MOST_UNROLLED + 1)), rows_of(MOST_UNROLLED + 1))


def test_a_loop_around_one_that_llvm_may_unroll_is_taken_for_an_innermost_one() -> None:
    assert not tvm_ffi.structural_equal(keep_remainders(rows_of(8)), rows_of(8))
