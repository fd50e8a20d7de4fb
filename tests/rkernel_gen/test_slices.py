"""Kernels of which each rTask reads a slice of a constant of its own."""

import math

import pytest
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import fused
from tvm_rammer.device import preset
from tvm_rammer.ir import Buffer, RGraph, ROperator
from tvm_rammer.rkernel_gen import make_kernels
from tvm_rammer.rkernel_gen.footprint.footprint import reads_slices


def sliced(first, length, rtasks=4):
    """A kernel whose rTasks each read `length` elements of `w`, the first of them at `first` times its number."""

    @T.prim_func(private=True, s_tir=True)
    def kernel(w: T.Buffer((4, 8), "float32"), y: T.Buffer((4,), "float32")):
        for rtask in T.parallel(rtasks):
            for n in range(length):
                y[rtask] = w[rtask * first // 8, n]

    return kernel


def test_slices_of_a_parameter_are_proven():
    assert reads_slices(sliced(8, 8), 4, 0) and reads_slices(sliced(8, 5), 4, 0)
    assert not reads_slices(sliced(0, 8), 4, 0)  # all read the same slice
    assert not reads_slices(sliced(8, 9), 4, 0)  # the first element of the next one, too
    assert not reads_slices(sliced(8, 8, rtasks=3), 3, 0)  # parts of different sizes


@pytest.mark.parametrize("columns", [64, 128])
def test_products_with_few_rows_have_slices(columns):
    func = fused([(1, 40), (40, columns)], lambda x, w: op.matmul(x, w))
    device = preset("cuda:h200")
    graph = RGraph(
        "g",
        (
            Buffer("x", (1, 40), "float32", "input"),
            Buffer("w", (40, columns), "float32", "constant"),
            Buffer("y", (1, columns), "float32", "output"),
        ),
        (ROperator("o", "f", (0, 1), (2,)),),
    )
    found = make_kernels([graph], {"f": func}, device).kernels["f"]
    slices = [k for k in found if k.spec.slices]
    assert slices and {k.rule for k in slices} == {"gemv"}
    for k in slices:
        packed = math.prod(k.packs[1].shape) * 4
        assert k.spec.slices.parameter == 1 and k.spec.slices.nbytes * k.spec.num_rtasks == packed
        assert 0 < k.spec.slices.factor <= 1
