"""Indices of an rTask function are the same after TVM has made its buffers flat once more."""

import numpy as np
import tvm
from tvm import tirx
from tvm.script import tirx as T

from tests.functions import TARGET
from tvm_rammer.persistent_codegen.cpu.keep_indices import keep_indices

ROWS, WINDOW, RTASKS = 16, 4, 2


@T.prim_func(s_tir=True)
def shifted(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), rtask: T.int32) -> None:
    """Rows of windows, each of which comes two rows later."""
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    for i in range(8):
        if rtask * 8 + i >= 2:
            for j in range(4):
                y[rtask * 32 + i * 4 + j] = x[(rtask * 2 + (i - 2) // 4) % 4 * 16 + (i + 2) % 4 * 4 + j]
        else:
            for j in range(4):
                y[rtask * 32 + i * 4 + j] = x[(rtask * 2 + (i + 14) // 4) % 4 * 16 + (i + 2) % 4 * 4 + j]


@T.prim_func(s_tir=True)
def whole_windows(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), rtask: T.int32) -> None:
    """Windows that are not shifted."""
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    for i, j in T.grid(8, 4):
        y[rtask * 32 + i * 4 + j] = x[(rtask * 8 + i) // 4 * 16 + (rtask * 8 + i) % 4 * 4 + j]


def run(func: tirx.PrimFunc) -> np.ndarray:
    """The rows that the rTasks of a function make of 0, 1, ..."""
    built = tvm.compile(tvm.IRModule({"main": func}), target=TARGET)
    x = tvm.runtime.tensor(np.arange(ROWS * WINDOW, dtype="float32"))
    y = tvm.runtime.tensor(np.zeros(ROWS * WINDOW, "float32"))
    for rtask in range(RTASKS):
        built["main"](x, y, rtask)
    return y.numpy().reshape(ROWS, WINDOW)


def test_shifted_windows_are_read_where_they_are() -> None:
    rows = np.arange(ROWS * WINDOW, dtype="float32").reshape(ROWS, WINDOW)
    assert np.array_equal(run(keep_indices(shifted)), np.roll(rows, 2, axis=0))
    assert not np.array_equal(run(shifted), np.roll(rows, 2, axis=0)), "TVM is mended: keep_indices can go"


def test_what_stays_the_same_is_left_alone() -> None:
    assert keep_indices(whole_windows).same_as(whole_windows)
