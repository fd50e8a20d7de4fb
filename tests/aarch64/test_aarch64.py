"""Kernels, plans and workers of another kind of processor, run: an AArch64 that is emulated, against NumPy."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.relay_passes.models import model, node, random, tensor, value
from tvm_rammer.zoo.inception_module import inception_module

from .emulate import MISSING, run_emulated

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]


def one(operator, shape, *constants, **attributes):
    """A model of one operator of float32, with constants as its other inputs."""
    names = [f"c{i}" for i in range(len(constants))]
    stored = [tensor(name, array) for name, array in zip(names, constants, strict=True)]
    return model([node(operator, ["x", *names], ["y"], **attributes)], [value("x", shape)], ["y"], stored)


def dynamically_quantised(rows, terms, columns):
    """A product as ONNX Runtime's quantiser writes it, of bytes that have the range of the data."""
    weights = np.random.default_rng(1).integers(-128, 128, (terms, columns), "int8")
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z"], ["sums"]),
        node("Cast", ["sums"], ["y"], to=1),
    ]
    return model(nodes, [value("x", [rows, terms])], ["y"], [tensor("w", weights)])


def layer(operator, gates, steps):
    """A recurrent layer with both directions."""
    weights = [0.3 * random(2, gates * 12, 12, seed=1), 0.3 * random(2, gates * 12, 12, seed=2)]
    return one(operator, [steps, 2, 12], *weights, hidden_size=12, direction="bidirectional")


def check(proto, folder, *arrays, tolerance=1e-5, **how):
    """Run a model there, and compare with what NumPy makes of it."""
    names = [i.name for i in proto.graph.input]
    want = ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True)))
    got = run_emulated(proto, arrays, folder, **how)
    for left, right in zip(got, want, strict=True):
        right = np.asarray(right)
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        largest = np.abs(right[np.isfinite(right)]).max(initial=0)
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * largest)


MODELS = {
    "convolution": (one("Conv", [1, 8, 13, 13], random(24, 8, 3, 3, seed=1), random(24), pads=[1, 1, 1, 1]), 1e-5),
    "strided convolution": (one("Conv", [1, 16, 15, 15], random(20, 16, 5, 5, seed=1), strides=[2, 2]), 1e-5),
    "pointwise convolution": (one("Conv", [1, 32, 9, 9], random(48, 32, 1, 1, seed=1)), 1e-5),
    "depthwise convolution": (one("Conv", [1, 12, 11, 11], random(12, 1, 3, 3, seed=1), group=12), 1e-5),
    "transposed convolution": (one("ConvTranspose", [1, 6, 7, 7], random(6, 8, 3, 3, seed=1), strides=[2, 2]), 1e-5),
    "product": (one("MatMul", [17, 64], random(64, 40, seed=1)), 1e-5),
    "batched product": (one("MatMul", [3, 5, 33], random(3, 33, 7, seed=1)), 1e-5),
    "product of bytes": (dynamically_quantised(5, 68, 48), 0),
    "softmax": (one("Softmax", [6, 50]), 1e-5),
    "mean": (one("ReduceMean", [5, 7, 9], axes=[1], keepdims=0), 1e-5),
    "layer norm": (one("LayerNormalization", [4, 6, 24], random(24), random(24, seed=2)), 1e-4),
    "transposition": (one("Transpose", [3, 18, 20], perm=[2, 0, 1]), 0),
    "pool": (one("MaxPool", [1, 6, 12, 12], kernel_shape=[3, 3], strides=[2, 2]), 0),
    "LSTM": (layer("LSTM", 4, 9), 1e-5),
    "GRU": (layer("GRU", 3, 9), 1e-5),
}  # fmt: skip


@pytest.mark.parametrize("workers", [1, 5])
def test_lanes_wait_for_each_other_whatever_the_number_of_threads(workers, tmp_path):
    """A net of branches, planned for more vEUs than the threads that come."""
    model = inception_module()
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    check(model, tmp_path, random(*shape, seed=3), tolerance=1e-4, workers=workers, runs=5)


def test_numbers_that_are_none(tmp_path):
    """What is rewritten for x86 is right here, too: NaN in choices, quotients by 0, shifts."""
    nodes = [
        node("Relu", ["x"], ["a"]), node("Max", ["x", "w"], ["b"]), node("ReduceMax", ["x"], ["c"], axes=[0]),
        node("Sign", ["x"], ["d"]), node("Sub", ["x", "x"], ["e0"]), node("Div", ["x", "e0"], ["e"]),
    ]  # fmt: skip
    x = np.array([np.nan, np.inf, -np.inf, 0, -1, 1e-40, 3e38, 2], "float32")
    proto = model(nodes, [value("x", [8])], list("abcde"), [tensor("w", x[::-1].copy())])
    with np.errstate(all="ignore"):
        check(proto, tmp_path, x, tolerance=0)


@pytest.mark.parametrize("name", MODELS)
def test_kernels_are_right(name, tmp_path):
    proto, tolerance = MODELS[name]
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    check(proto, tmp_path, random(*shape, seed=3), tolerance=tolerance)
