"""What TVM would simplify wrongly, against NumPy and ONNX Runtime."""

import numpy as np
import pytest
from tvm import relax
from tvm.script import tirx as T

import tvm_rammer

from ..models import by_onnxruntime, model, node, tensor, value

NUMBERS = np.array([np.inf, -np.inf, np.nan, 0.0, 1.0, -2.5, 1e30, 3e38], "float32")
ONE = np.float32(1)
CASES = {
    "x / (x - x)": ([node("Sub", ["x", "x"], ["a"]), node("Div", ["x", "a"], ["y"])], lambda x: x / (x - x)),
    "(x - x) + 1": ([node("Sub", ["x", "x"], ["a"]), node("Add", ["a", "one"], ["y"])], lambda x: (x - x) + ONE),
    "(x + 1) - x": ([node("Add", ["x", "one"], ["a"]), node("Sub", ["a", "x"], ["y"])], lambda x: (x + ONE) - x),
    "x - (x + 1)": ([node("Add", ["x", "one"], ["a"]), node("Sub", ["x", "a"], ["y"])], lambda x: x - (x + ONE)),
    "relu(x) - relu(x)": (
        [node("Relu", ["x"], ["a"]), node("Relu", ["x"], ["b"]), node("Sub", ["a", "b"], ["y"])],
        lambda x: np.maximum(x, 0) - np.maximum(x, 0),
    ),
    "x if x == x else 1": (
        [node("Neg", ["x"], ["a"]), node("Equal", ["a", "a"], ["b"]), node("Where", ["b", "x", "one"], ["y"])],
        lambda x: np.where(x == x, x, ONE),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_differences_of_the_same_number(name):
    nodes, by_numpy = CASES[name]
    proto = model(nodes, [value("x", [8])], ["y"], [tensor("one", ONE)])
    with np.errstate(all="ignore"):
        want = by_numpy(NUMBERS)
    np.testing.assert_array_equal(tvm_rammer.compile(proto, cache=False)(NUMBERS), want)


@T.prim_func(private=True, s_tir=True)
def not_larger(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "bool")):
    for i in range(8):
        with T.sblock("y"):
            a = T.axis.spatial(8, i)
            y[a] = not (x[a] > T.float32(0))


@T.prim_func(private=True, s_tir=True)
def not_within(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "bool")):
    within = T.alloc_buffer((8,), "bool")
    for i in range(8):
        with T.sblock("within"):
            a = T.axis.spatial(8, i)
            within[a] = x[a] > T.float32(0) and x[a] < T.float32(2)
    for i in range(8):
        with T.sblock("y"):
            a = T.axis.spatial(8, i)
            y[a] = not within[a]


@pytest.mark.parametrize(
    ("func", "by_numpy"), [(not_larger, lambda x: ~(x > 0)), (not_within, lambda x: ~((x > 0) & (x < 2)))]
)
def test_what_is_negated_may_be_false_of_nan(func, by_numpy):
    """Of a negated comparison TVM makes the opposite one, once blocks are put into one another, too."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((8,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = relax.call_tir(builder.add_func(func, "negated"), x, relax.TensorType((8,), "bool"))
            out = builder.emit_output(made)
        builder.emit_func_output(out)
    np.testing.assert_array_equal(tvm_rammer.compile(builder.get(), cache=False)(NUMBERS), by_numpy(NUMBERS))


def test_other_differences_are_left_alone():
    """So that what tuning logs know stays what it is: a softmax subtracts a maximum, which is another array."""
    from tests.functions import fused
    from tvm_rammer.relay_passes.passes.exact_simplification import ExactSimplification

    func = fused([(4, 9)], lambda x: relax.op.nn.softmax(x))
    mod = relax.BlockBuilder().get()
    mod["main"] = func
    assert ExactSimplification()(mod)["main"].same_as(func)


def test_an_average_pool_with_dilations_counts_what_it_adds():
    attributes = {"dilations": [1, 2], "kernel_shape": [5, 2], "strides": [2, 2]}
    proto = model([node("AveragePool", ["x"], ["y"], **attributes)], [value("x", [1, 1, 5, 5])], ["y"], opset=19)
    x = np.arange(25, dtype="float32").reshape(1, 1, 5, 5)
    (want,) = by_onnxruntime(proto, x=x)
    np.testing.assert_allclose(tvm_rammer.compile(proto, cache=False)(x), want, rtol=1e-6)


def test_a_reversed_view_is_one_rtask():
    """TVM takes (4 - i) % 5 apart into something else, so no kernel could have it."""
    x = np.arange(5, dtype="float32").reshape(1, 5, 1)
    ends = {"shape": 5, "from": -1, "to": -(2**31), "axis": 0, "step": -1}
    nodes = [node("Reshape", ["x", "shape"], ["v"]), node("Slice", ["v", "from", "to", "axis", "step"], ["y"])]
    proto = model(nodes, [value("x", x.shape)], [value("y", (5,))], [tensor(n, np.array([i])) for n, i in ends.items()])
    module = tvm_rammer.compile(proto, cache=False)
    np.testing.assert_array_equal(module(x), x.ravel()[::-1])
    assert not module.compilation.stock_calls
