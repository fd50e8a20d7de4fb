"""Light models with random weights: their outputs tell right from wrong."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from tvm_rammer.zoo.light import NAMES, light_path
from tvm_rammer.zoo.onnx_tools.before_softmax import before_softmax
from tvm_rammer.zoo.onnx_tools.random_weights import random_weights

from .light_models import narrow_light


def light(name):
    return onnx.load(light_path(name))


def run(model, seed=0):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (given,) = session.get_inputs()
    x = np.random.default_rng(seed).standard_normal(given.shape).astype(np.float32)
    return session.run(None, {given.name: x})[0]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_finite_and_far_from_flat(name):
    output = run(narrow_light(name))
    assert np.isfinite(output).all()
    largest = np.abs(output).max()
    assert 1e-2 < largest < 1e3
    assert output.std() / largest > 0.05
    assert len(np.unique(output)) > output.size / 4


def weights_of(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def test_weights_follow_from_the_seed():
    first, again, other = (weights_of(random_weights(light("squeezenet"), seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[n], again[n]) for n in first)
    assert not np.array_equal(first["conv10_w_0"], other["conv10_w_0"])


def test_only_the_weights_change():
    model = light("densenet121")
    before = model.SerializeToString()
    made = random_weights(model)
    assert model.SerializeToString() == before
    kept = [n for n in model.graph.node if n.op_type != "ConstantOfShape"]
    assert list(made.graph.node) == kept
    assert made.graph.output == model.graph.output
    after = weights_of(made)
    for name, array in weights_of(model).items():
        if array.dtype == np.int64 and name in after:
            assert np.array_equal(after[name], array)


def test_variances_are_positive():
    made = random_weights(light("resnet50"))
    variances = {n.input[4] for n in made.graph.node if n.op_type == "BatchNormalization"}
    weights = weights_of(made)
    assert variances
    assert all(weights[name].min() > 0.5 for name in variances)


def test_before_softmax_cuts_the_last_softmax_only():
    model = light("squeezenet")
    cut = before_softmax(model)
    assert [n.op_type for n in cut.graph.node] == [n.op_type for n in model.graph.node if n.op_type != "Softmax"]
    assert cut.graph.output[0].name == cut.graph.node[-1].output[0]
    assert before_softmax(cut) == cut
    assert any(n.op_type == "Softmax" for n in model.graph.node)
