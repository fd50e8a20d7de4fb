"""Sums along rows, and functions of elements, in vectors: every tiling computes the same, on both widths of vectors."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import UNOPTIMISED, chosen, fused, random_arrays, run, run_each, run_kernels
from tests.marks import one_in
from tvm_rammer.device import host_cpu
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu, lower

WIDTHS = [b for b in (32, 64) if b <= host_cpu().vector_bytes]

FUNCTIONS = {
    "softmax": ([(6, 5, 48)], lambda x: op.nn.softmax(x)),
    "softmax of 17": ([(9, 17)], lambda x: op.nn.softmax(x)),
    "softmax along columns": ([(2, 12, 9)], lambda x: op.nn.softmax(x, axis=1)),
    "log softmax": ([(7, 30)], lambda x: op.nn.log_softmax(x)),
    "layer norm": ([(10, 96), (96,), (96,)], lambda x, g, b: op.nn.layer_norm(x, g, b, axes=-1)),
    "global mean 13x13": ([(2, 24, 13, 13)], lambda x: op.mean(x, (2, 3), keepdims=True)),
    "largest of a row": ([(8, 40)], lambda x: op.max(x, -1)),
    "smallest of all": ([(1, 6, 64)], lambda x: op.min(x)),
    "sum of columns": ([(40, 12)], lambda x: op.sum(x, 0)),
    "sum of a scaled, shifted row": ([(8, 64), (64,)], lambda x, y: op.sum(op.add(op.multiply(x, x), y), -1)),
    "layer norm of images": (
        [(2, 3, 8, 12), (8, 12), (8, 12)],
        lambda x, g, b: op.nn.layer_norm(x, g, b, axes=[2, 3]),
    ),
    "mean across channels": ([(2, 12, 9, 16)], lambda x: op.mean(x, 1)),
    "tanh of rows of 28": ([(3, 4, 28)], op.tanh),
    "sigmoid with broadcast": ([(6, 1, 20), (5, 1)], lambda x, y: op.sigmoid(op.add(x, y))),
}


@pytest.mark.parametrize("vector_bytes", WIDTHS)
@pytest.mark.parametrize("name", one_in(3, FUNCTIONS))
def test_every_tiling_is_right(name, vector_bytes):
    func = fused(*FUNCTIONS[name])
    arrays = random_arrays(func)
    want = run(func, arrays, UNOPTIMISED)
    kernels = chosen("op", func, replace(host_cpu(), vector_bytes=vector_bytes))
    assert len({k.spec.num_rtasks for k in kernels}) == len(kernels) >= (2 if want.ndim else 1)
    for got in run_kernels(kernels, arrays):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("name", "vector_bytes"),
    [
        *itertools.product(
            ["softmax", "global mean 13x13", "layer norm", "largest of a row", "smallest of all"], (32, 64)
        ),
        ("softmax along columns", 64),  # 9 columns are no vectors of 8
    ],
)
def test_the_inner_loop_is_a_vector(name, vector_bytes):
    for kernel in chosen("op", fused(*FUNCTIONS[name]), replace(host_cpu(), vector_bytes=vector_bytes)):
        assert "T.vectorized" in kernel.func.script()


def test_elements_that_lie_flat_are_one_loop():
    for kernel in chosen("op", fused(*FUNCTIONS["tanh of rows of 28"]), host_cpu()):
        lowered = lower(kernel.func).script()
        assert "%" not in lowered
        assert "//" not in lowered


def test_each_row_is_finished_before_the_next_begins():
    """What a row needs is computed inside the rows' loop, so that it is still in the cache."""
    (kernel,) = [k for k in chosen("op", fused(*FUNCTIONS["layer norm"]), host_cpu()) if k.spec.num_rtasks == 2]
    arrays = extract_cpu(kernel).scratch
    assert max(nbytes for nbytes, _ in arrays) <= host_cpu().vector_bytes


def test_a_row_is_divided_by_one_reciprocal():
    for kernel in chosen("op", fused(*FUNCTIONS["softmax"]), host_cpu()):
        assert "T.float32(1.0) / softmax_sum" in kernel.func.script()


def test_copies_of_an_element_are_written_together():
    func = fused([(1, 2, 5, 7)], lambda x: op.image.resize2d(x, (10, 14), layout="NCHW", method="nearest_neighbor",
                 coordinate_transformation_mode="asymmetric", rounding_method="floor"))  # fmt: skip
    arrays = random_arrays(func)
    kernels = chosen("op", func, host_cpu())
    assert "T.unroll(T.int64(2))" in kernels[0].func.script()
    want, *results = run_each([func, *(k.func for k in kernels)], [arrays] * (1 + len(kernels)))
    for got in results:
        np.testing.assert_array_equal(got, want)


@T.prim_func(private=True, s_tir=True)
def sum_from_one(x: T.Buffer((1, 8), "int32"), y: T.Buffer((1, 3), "int32")):
    for i, j, k in T.grid(1, 3, 8):
        with T.sblock("sum"):
            a, b, c = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[a, b] = T.int32(1)
            y[a, b] = y[a, b] + x[a, c]


def test_sums_of_integers_that_begin_with_something_have_kernels():
    """TVM asks all reductions that it knows of whether they begin like this one: extremes have no infinite integer."""
    kernels = chosen("sum", sum_from_one, replace(host_cpu(), units=2))
    x = np.arange(8, dtype="int32")[None]
    for got in run_kernels(kernels, [x, np.zeros((1, 3), "int32")]):
        np.testing.assert_array_equal(got, np.full((1, 3), 29))
