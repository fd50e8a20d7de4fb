"""Norms of ONNX's own: scales that are broadcast, and numbers of half precision whose squares it does not hold."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, tensor, value
from ..test_operators import close

SHAPES = [(8,), (1,), (), (3, 8), (3, 1), (2, 1, 8), (1, 1, 8), (1, 1, 1)]
HALF = TensorProto.FLOAT16


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_scale_that_is_broadcast(shape, axis, run):
    for kind, opset, ir in (("LayerNormalization", 17, 8), ("RMSNormalization", 23, 11)):
        constants = [tensor("s", random(*shape) if shape else np.float32(0.3))]
        proto = model([node(kind, ["x", "s"], ["y"], axis=axis)], [value("x", [2, 3, 8])], ["y"], constants, opset, ir)
        close(run, proto, x=random(2, 3, 8, seed=1))


@pytest.mark.parametrize("outputs", [["y"], ["y", "mean", "inverse"]])
@pytest.mark.parametrize(("scale", "bias"), [((8,), (3, 1)), ((3, 1), (2, 1, 8)), ((1,), (1,)), ((3, 8), (1, 8))])
def test_a_bias_of_another_shape_than_the_scale(scale, bias, outputs, run):
    nodes = [node("LayerNormalization", ["x", "s", "b"], outputs, axis=1, epsilon=0.1)]
    given = [value("x", [2, 3, 8]), value("s", scale), value("b", bias)]
    feeds = {"x": random(2, 3, 8), "s": random(*scale, seed=1), "b": random(*bias, seed=2)}
    close(run, model(nodes, given, outputs), **feeds)


@pytest.mark.parametrize("shape", [[3], [2, 3, 8, 1]])
def test_a_scale_that_does_not_fit_is_refused(shape):
    nodes = [node("LayerNormalization", ["x", "s"], ["y"])]
    with pytest.raises(ModelError, match=r"a scale or bias of the shape \[.*\], which does not fit \[2, 3, 8\]"):
        load_model(model(nodes, [value("x", [2, 3, 8]), value("s", shape)], ["y"]))


def test_batch_normalization_of_a_vector(run):
    """It has one channel."""
    constants = [tensor(name, np.abs(random(1, seed=seed)) + 0.5) for seed, name in enumerate("sbmv")]
    nodes = [node("BatchNormalization", ["x", *"sbmv"], ["y"], epsilon=0.01)]
    close(run, model(nodes, [value("x", [7])], ["y"], constants), x=random(7))


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 2), (2, 3)])
def test_batch_normalization_of_each_number(shape, run):
    """As it might be before opset 9."""
    constants = [tensor(name, np.abs(random(*shape[1:], seed=seed)) + 0.5) for seed, name in enumerate("sbmv")]
    nodes = [node("BatchNormalization", ["x", *"sbmv"], ["y"], epsilon=0.01, spatial=0)]
    close(run, model(nodes, [value("x", shape)], ["y"], constants, opset=7), x=random(*shape, seed=9))


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("shape", [(2, 6, 3, 3), (1, 6, 5), (2, 6)])
def test_a_scale_for_each_group_of_channels(shape, opset, run):
    """As GroupNormalization was before opset 21: ONNX withdrew it, ONNX Runtime computes it."""
    constants = [tensor(name, random(3, seed=seed)) for seed, name in enumerate("sb")]
    nodes = [node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3, epsilon=0.01)]
    close(run, model(nodes, [value("x", shape)], ["y"], constants, opset=opset), x=random(*shape, seed=2))


@pytest.mark.parametrize("inputs", [["x"], ["x", "s"], ["x", "", "s"]])
def test_a_scale_for_each_group_that_is_left_out_is_refused(inputs):
    nodes = [node("GroupNormalization", inputs, ["y"], num_groups=3)]
    proto = model(nodes, [value("x", [2, 6, 3])], ["y"], [tensor("s", random(3))], opset=18)
    with pytest.raises(ModelError, match=r"GroupNormalization 'y' leaves out its input [12]"):
        load_model(proto)


def test_there_was_no_group_normalization_before_opset_18():
    nodes = [node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=3)]
    proto = model(nodes, [value("x", [2, 6, 3])], ["y"], [tensor("s", random(3))], opset=17)
    with pytest.raises(UnsupportedOperatorError, match=r"GroupNormalization"):
        load_model(proto)


@pytest.mark.parametrize("shape", [(2, 4, 3, 3), (2, 4, 9)])
@pytest.mark.parametrize("kind", ["InstanceNormalization", "MeanVarianceNormalization"])
def test_large_numbers_of_half_precision(kind, shape, run):
    plain = kind.startswith("Mean")
    how = {"axes": list(range(2, len(shape)))} if plain else {}
    constants = [] if plain else [tensor(n, random(4, seed=i).astype("float16")) for i, n in enumerate("sb")]
    nodes = [node(kind, ["x"] if plain else ["x", "s", "b"], ["y"], **how)]
    x = (3000 * random(*shape, seed=1)).astype("float16")
    proto = model(nodes, [value("x", shape, HALF)], [value("y", shape, HALF)], constants)
    wide = [tensor(c.name, random(4, seed=i).astype("float16").astype("float32")) for i, c in enumerate(constants)]
    (expected,) = by_onnxruntime(model(nodes, [value("x", shape)], ["y"], wide), x=x.astype("float32"))
    got = run(load_model(proto), x)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
