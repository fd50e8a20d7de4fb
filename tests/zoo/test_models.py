"""The models built here: valid, of the right size, and right in ONNX Runtime."""

import collections

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.lstm_stack import lstm_stack


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)[0]


def weights_of(model):
    return {t.name: numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("layers", "steps", "hidden", "batch"), [(1, 1, 4, 1), (3, 2, 8, 1), (2, 4, 16, 3)])
def test_lstm_stack_is_an_lstm(layers, steps, hidden, batch):
    model = lstm_stack(layers, steps, hidden, batch, seed=3)
    onnx.checker.check_model(model, full_check=True)
    rng = np.random.default_rng(0)
    below = [rng.standard_normal((batch, hidden)).astype(np.float32) for _ in range(steps)]
    got = run(model, {f"x{t}": x for t, x in enumerate(below)})
    weights = weights_of(model)
    for layer in range(layers):
        h = c = np.zeros((batch, hidden))
        above = []
        for x in below:
            total = x @ weights[f"w{layer}"] + h @ weights[f"u{layer}"] + weights[f"b{layer}"]
            i, f, g, o = np.split(total, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            above.append(h)
        below = above
    np.testing.assert_allclose(got, below[-1], rtol=1e-4, atol=1e-6)
    assert got.std() > 0.01


def test_lstm_stack_has_two_products_a_cell_but_for_the_first_step():
    model = lstm_stack(4, 4, 8)
    count = collections.Counter(n.op_type for n in model.graph.node)
    assert count["MatMul"] == 4 * (2 * 4 - 1)
    assert count["Split"] == 16


def test_inception_module():
    model = inception_module(1, channels=8, size=6, widths=(3, 4, 5, 2, 3, 2))
    onnx.checker.check_model(model, full_check=True)
    x = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32)
    y = run(model, {"x": x})
    assert y.shape == (1, 13, 6, 6)
    weights = weights_of(model)
    first = np.einsum("oi,bihw->bohw", weights["one_w"][:, :, 0, 0], x) + weights["one_b"][None, :, None, None]
    np.testing.assert_allclose(y[:, :3], np.maximum(first, 0), rtol=1e-4, atol=1e-5)
    assert y.std() / y.max() > 0.05


@pytest.mark.parametrize("build", [inception_module, lambda seed: lstm_stack(2, 2, 8, seed=seed)])
def test_seeds(build):
    assert build(1) == build(1)
    assert build(1) != build(2)
