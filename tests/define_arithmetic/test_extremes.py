"""The largest and the smallest of numbers: NaN where one of them is NaN, in loops of every shape."""

import itertools

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import tirx as T

import tvm_rammer
from tests.functions import relax_module
from tests.hostile import model, results
from tvm_rammer.define_arithmetic import define_arithmetic
from tvm_rammer.device import host_cpu

NAN = np.nan


def test_reductions_keep_a_nan_wherever_it_is():
    x = np.random.default_rng(0).normal(size=(1, 5, 6, 8)).astype("float32")
    for channel, (row, column) in enumerate([(0, 0), (5, 7), (2, 3), (3, 0)]):
        x[0, channel, row, column] = NAN
    axes = {"axes": np.array([2, 3])}
    nodes = [
        ("ReduceMax", ["x", "axes"], {"keepdims": 0}),
        ("ReduceMin", ["x", "axes"], {"keepdims": 0}),
        ("MaxPool", ["x"], {"kernel_shape": [6, 8]}),
    ]
    largest, smallest, pooled = results(model(nodes, {"x": x}, axes), {"x": x})
    np.testing.assert_array_equal(largest, x.max((2, 3)))
    np.testing.assert_array_equal(smallest, x.min((2, 3)))
    np.testing.assert_array_equal(pooled[:, :, 0, 0], x.max((2, 3)))


@pytest.mark.parametrize("stride", [1, 2])
def test_a_pool_keeps_a_nan_wherever_it_is(stride):
    x = np.random.default_rng(0).standard_normal((1, 30, 12, 20)).astype("float32")
    for channel, (row, column) in enumerate(itertools.product((0, 1, 5, 10, 11), (0, 1, 8, 13, 18, 19))):
        x[0, channel, row, column] = NAN
    nodes = [("MaxPool", ["x"], {"kernel_shape": [3, 3], "strides": [stride] * 2, "pads": [1, 1, 1, 1]})]
    (pooled,) = results(model(nodes, {"x": x}), {"x": x})
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    taps = [padded[:, :, row : row + 12, column : column + 20] for row in range(3) for column in range(3)]
    np.testing.assert_array_equal(pooled, np.maximum.reduce(taps)[:, :, ::stride, ::stride])


def test_extremes_of_what_is_computed_in_bfloat16():
    """TVM computes it in float32, whose bits are others."""
    op = relax.op

    def largest(x):
        x = op.astype(x, "bfloat16")
        return op.astype(op.maximum(op.add(x, x), op.multiply(x, x)), "float32")

    x = np.array([1, NAN, -2, 3], "float32")
    got = tvm_rammer.compile(relax_module([(4,)], largest))(x)
    np.testing.assert_array_equal(np.asarray(got), [2, NAN, 4, 9])


def test_nan_is_the_extreme_element():
    x = np.array([[1, NAN, 3], [NAN, NAN, -np.inf], [0, -2, 5], [7, 2, NAN], [np.inf] * 3, [-np.inf] * 3], "float32")
    nodes = [("ArgMax", ["x"], {"axis": 1, "keepdims": 0}), ("ArgMin", ["x"], {"axis": 1, "keepdims": 0})]
    most, least = results(model(nodes, {"x": x}), {"x": x})
    np.testing.assert_array_equal(most, x.argmax(1))
    np.testing.assert_array_equal(np.delete(least, 1), np.delete(x.argmin(1), 1))


def test_a_logarithm_of_a_sum_of_infinities():
    x = np.array([[1, np.inf, 3], [-np.inf, 0, -np.inf], [-np.inf, -np.inf, -np.inf], [NAN, 1, 2]], "float32")
    nodes = [("ReduceLogSumExp", ["x", "axes"], {"keepdims": keep}) for keep in (0, 1)]
    (flat, kept) = results(model(nodes, {"x": x}, {"axes": np.array([1])}), {"x": x})
    np.testing.assert_array_equal(flat, np.array([np.inf, 0, -np.inf, NAN], "float32"))
    np.testing.assert_array_equal(kept[:, 0], flat)


def test_averages_of_large_halves_are_finite():
    x = np.full((1, 1, 1, 5), 65504, "float16")
    (got,) = results(model([("AveragePool", ["x"], {"kernel_shape": [1, 5]})], {"x": x}), {"x": x})
    assert got.item() == 65504


def test_chains_of_extremes_of_one_number_compile():
    """LLVM takes exponential time for a chain of choices with the same condition."""

    @T.prim_func(s_tir=True)
    def chain(x: T.Buffer((2,), "float32"), y: T.Buffer((12,), "float32")):
        for i, _, k in T.grid(12, 64, 2):
            with T.sblock("least"):
                a = T.axis.spatial(12, i)
                b = T.axis.reduce(2, k)
                y[a] = T.min(y[a], x[b])

    func = define_arithmetic(chain.with_attr("global_symbol", "main"), "llvm")
    y = tvm.runtime.tensor(np.array([5, NAN] * 6, "float32"))
    tvm.compile(func, tvm.target.Target("llvm"))["main"](tvm.runtime.tensor(np.array([3, 4], "float32")), y)
    np.testing.assert_array_equal(y.numpy(), np.array([3, NAN] * 6, "float32"))


@pytest.mark.parametrize("shape", [(16, 24, 32), (8, 31, 16), (40, 20, 1)])
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_long_extremes_around_loops_compile(op, shape):
    """LLVM takes exponential time for a chain of choices that a loop carries."""
    x = np.random.default_rng(0).normal(size=(1, *shape)).astype("float32")
    x[0, -1, 3, 0] = NAN
    call = (op, ["x", "axes"], {"keepdims": 0})
    (got,) = results(model([call], {"x": x}, {"axes": np.array([1, 2])}), {"x": x})
    np.testing.assert_array_equal(got, (x.max if op == "ReduceMax" else x.min)((1, 2)))


@pytest.mark.parametrize("loops", [(5, 2), (3, 3), (8, 2), (3, 5)], ids=str)
def test_extremes_in_two_loops_compile(loops):
    """LLVM takes exponential time for chains of choices that are not long, too."""
    rows, columns = loops

    @T.prim_func(private=True, s_tir=True)
    def least(x: T.Buffer((8, 2), "float32"), y: T.Buffer((33, 2), "float32")):
        sums = T.sblock_alloc_buffer((8,), "float32")
        for i, k in T.grid(8, 2):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    sums[vi] = T.float32(0)
                sums[vi] = sums[vi] + x[vi, vk]
        for i, j, k, m in T.grid(33, 2, rows, columns):
            with T.sblock("least"):
                vi, vj, vk, _ = T.axis.remap("SSRR", [i, j, k, m])
                with T.init():
                    y[vi, vj] = T.float32(-2)
                y[vi, vj] = T.min(y[vi, vj], T.if_then_else(vk < 4, sums[vk], T.float32(1)))

    builder = relax.BlockBuilder()
    with builder.function("main", [x := relax.Var("x", relax.TensorType((8, 2), "float32"))]):
        out = relax.call_tir(builder.add_func(least, "least"), x, out_ty=relax.TensorType((33, 2), "float32"))
        builder.emit_func_output(builder.emit(out))
    executable = tvm.compile(builder.get(), tvm.target.Target(host_cpu().target_config()), relax_pipeline="rammer")
    x = np.random.default_rng(0).normal(size=(8, 2)).astype("float32") * 4
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    want = min(np.float32(-2), x.sum(1)[: min(rows, 4)].min())
    np.testing.assert_allclose(got, np.full((33, 2), want), rtol=1e-6)
