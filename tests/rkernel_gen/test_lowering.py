"""Indices that TVM changes when it lowers a kernel are found, and others left alone."""

from collections import Counter

import numpy as np
import pytest
from tvm import tirx
from tvm.script import tirx as T

from tests.functions import chosen, run
from tvm_rammer.device import host_cpu, preset
from tvm_rammer.rkernel_gen.analysis.lowering import changes_an_index
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.tiling import Function


def repeated(shift: int, times: int) -> tirx.PrimFunc:
    """A kernel that repeats rows, and moves along them: its two loops are fused."""

    @T.prim_func(private=True, s_tir=True)
    def main(x: T.Buffer((3, 2), "float32"), y: T.Buffer((12, 6), "float32")) -> None:
        for t in T.parallel(72):
            with T.sblock("y"):
                i = T.axis.spatial(12, t // 6)
                j = T.axis.spatial(6, t % 6)
                y[i, j] = T.if_then_else(j >= 2, x[i % 3, (j - shift) // times], T.float32(0))

    return main


def test_an_index_that_tvm_changes_is_found() -> None:
    x = np.arange(6, dtype="float32").reshape(3, 2)
    want = np.where(np.arange(6) >= 2, x[np.arange(12) % 3][:, (np.arange(6) - 2) // 3], 0)
    kernel = repeated(2, 3)
    assert changes_an_index(kernel)
    assert not np.array_equal(run(kernel, [x, np.zeros((12, 6), "float32")]), want), "TVM is mended: the check can go"


@pytest.mark.parametrize(("shift", "times"), [(0, 3), (3, 3)])
def test_others_are_left_alone(shift: int, times: int) -> None:
    assert not changes_an_index(repeated(shift, times))


@T.prim_func(private=True, s_tir=True)
def rows(x: T.Buffer((3, 2), "float32"), y: T.Buffer((12, 6), "float32")) -> None:
    for i0, j0 in T.grid(12, 6):
        with T.sblock("y"):
            i, j = T.axis.remap("SS", [i0, j0])
            y[i, j] = T.if_then_else(j >= 2, x[i % 3, (j - 2) // 3], T.float32(0))


def test_such_kernels_are_not_made() -> None:
    assert chosen("rows", rows, host_cpu())
    dropped: Counter[str] = Counter()
    choose(Function("rows", rows, preset("cuda:h200")), dropped=dropped)
    assert dropped["TVM would change an index of it"]


@T.prim_func(private=True, s_tir=True)
def cancelled(x: T.Buffer((6, 5), "float32"), y: T.Buffer((12, 6), "float32")) -> None:
    for i0, j0 in T.grid(12, 6):
        with T.sblock("y"):
            i, j = T.axis.remap("SS", [i0, j0])
            y[i, j] = x[(i // 2 + j + j * -1 - 6) % 6, 4 - i // 3]


def test_an_axis_that_is_taken_away_again_is_left_to_tvm() -> None:
    """TVM's analysis of index maps divides by its factor, which is 0."""
    assert changes_an_index(cancelled)
    assert not chosen("cancelled", cancelled, host_cpu()), "TVM is mended: kernels can be made of it"
