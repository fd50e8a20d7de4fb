"""Integer products and quantised operators, in floating point, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, op_names, random, tensor, value, with_contrib
from ..test_operators import close
from .byte_values import INT8, UINT8, integers, off_by_one_at_most, weights_of

SCALES = [tensor(f"s{i}", np.float32(s)) for i, s in enumerate((0.02, 0.015, 0.03))]
ZEROS = [tensor(f"z{i}", np.uint8(z)) for i, z in enumerate((100, 128, 90))]


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_quantised_operators_of_two(kind, run):
    only = node(kind, ["a", "s0", "z0", "b", "s1", "z1", "s2", "z2"], ["y"], domain="com.microsoft")
    given = [value("a", [3, 8], UINT8), value("b", [3, 8], UINT8)]
    proto = with_contrib(model([only], given, [value("y", [3, 8], UINT8)], [*SCALES, *ZEROS]))
    off_by_one_at_most(run, proto, a=integers(UINT8, 3, 8), b=integers(UINT8, 3, 8, seed=1))


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ],
)
def test_quantised_operators_of_one(kind, attributes, run):
    scale = tensor("ys", np.float32(0.004))
    only = node(kind, ["x", "s0", "z0", "ys", "z1"], ["y"], domain="com.microsoft", **attributes)
    given, result = [value("x", [2, 9, 6, 6], UINT8)], value("y", None, UINT8)
    proto = with_contrib(model([only], given, [result], [*SCALES, *ZEROS, scale]))
    off_by_one_at_most(run, proto, x=integers(UINT8, 2, 9, 6, 6))


@pytest.mark.parametrize("elem", [UINT8, INT8])
@pytest.mark.parametrize("kind", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_a_result_without_a_zero_point_has_the_type_of_the_data(kind, elem, run):
    only = node(kind, ["x", "s0", "", "ys", ""], ["y"], domain="com.microsoft")
    constants = [*SCALES, tensor("ys", np.float32(0.02))]
    proto = with_contrib(model([only], [value("x", [2, 9], elem)], [value("y", None, elem)], constants))
    off_by_one_at_most(run, proto, x=integers(elem, 2, 9))


def test_quantised_concatenation(run):
    only = node("QLinearConcat", ["s2", "z2", "a", "s0", "z0", "b", "s1", "z1"], ["y"], domain="com.microsoft", axis=1)
    given = [value("a", [3, 8], UINT8), value("b", [3, 5], UINT8)]
    proto = with_contrib(model([only], given, [value("y", [3, 13], UINT8)], [*SCALES, *ZEROS]))
    off_by_one_at_most(run, proto, a=integers(UINT8, 3, 8), b=integers(UINT8, 3, 5, seed=1))


@pytest.mark.parametrize(("turned", "how"), [(0, {}), (1, {}), (1, {"alpha": 0.7})])
def test_quantised_gemm(turned, how, run):
    b = weights_of(20, 9)
    constants = [
        *SCALES, *ZEROS, tensor("b", b.T.copy() if turned else b), tensor("bz", np.int8(0)),
        tensor("c", np.arange(9, dtype="int32") * 500), tensor("ys", np.float32(0.5)),
    ]  # fmt: skip
    only = node(
        "QGemm",
        ["a", "s0", "z0", "b", "s1", "bz", "c", "ys", "z1"],
        ["y"],
        domain="com.microsoft",
        transB=turned,
        **how,
    )
    proto = with_contrib(model([only], [value("a", [4, 20], UINT8)], [value("y", [4, 9], UINT8)], constants))
    off_by_one_at_most(run, proto, a=integers(UINT8, 4, 20))


@pytest.mark.parametrize("bias", [False, True])
def test_integer_products_to_float(bias, run):
    inputs = ["a", "b", "s0", "bs", "z0", "", "bias"][: 7 if bias else 5]
    constants = [
        *SCALES, *ZEROS, tensor("b", weights_of(20, 9)), tensor("bs", np.linspace(0.01, 0.1, 9).astype("float32")),
        tensor("bias", random(9)),
    ]  # fmt: skip
    only = node("MatMulIntegerToFloat", inputs, ["y"], domain="com.microsoft")
    proto = with_contrib(model([only], [value("a", [4, 20], UINT8)], [value("y", [4, 9])], constants))
    close(run, proto, a=integers(UINT8, 4, 20))


def test_dynamically_quantised_layers(run):
    """As ONNX Runtime's quantiser writes a linear layer of a speech model."""
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        node("Add", ["i", "bias"], ["sum"]),
        node("Cast", ["sum"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["s", "ws"], ["both"]),
        node("Mul", ["f", "both"], ["y"]),
    ]
    constants = [tensor("w", weights_of(64, 32)), tensor("wz", np.int8(0)), tensor("ws", np.float32(0.01))]
    proto = model(nodes, [value("x", [5, 64])], ["y"], [*constants, tensor("bias", np.arange(32, dtype="int32") * 99)])
    close(run, proto, x=random(5, 64))
    assert op_names(load_model(proto)).count("matmul") == 1


def test_a_choice_of_quantised_values(run):
    names = ["c", "a", "s0", "z0", "b", "s1", "z1", "s2", "z2"]
    only = node("QLinearWhere", names, ["y"], domain="com.microsoft")
    given = [value("c", [3, 8], TensorProto.BOOL), value("a", [3, 8], UINT8), value("b", [3, 8], UINT8)]
    proto = with_contrib(model([only], given, [value("y", [3, 8], UINT8)], [*SCALES, *ZEROS]))
    feeds = {"c": integers(UINT8, 3, 8, seed=2) > 100, "a": integers(UINT8, 3, 8), "b": integers(UINT8, 3, 8, seed=1)}
    off_by_one_at_most(run, proto, **feeds)


@pytest.mark.parametrize("attributes", [{"axis": 1, "opset": 13}, {"axis": -1, "opset": 11}])
def test_a_softmax_of_quantised_values(attributes, run):
    """ONNX Runtime looks exponentials up in a table: a ninth of its results are the next number."""
    only = node("QLinearSoftmax", ["x", "s0", "z0", "ys", "z1"], ["y"], domain="com.microsoft", **attributes)
    given, result = [value("x", [2, 9, 6], UINT8)], value("y", None, UINT8)
    proto = with_contrib(model([only], given, [result], [*SCALES, *ZEROS, tensor("ys", np.float32(0.004))]))
    x = integers(UINT8, 2, 9, 6)
    got, (expected,) = run(load_model(proto), x).astype(int), by_onnxruntime(proto, x=x)
    assert len(np.unique(expected)) > 3
    assert np.abs(got - expected).max() <= 1
    powers = np.exp(0.02 * (x.astype("float64") - 100))
    exact = powers / powers.sum(attributes["axis"], keepdims=True) / 0.004 + 128
    assert np.abs(got - exact.clip(0, 255)).max() <= 0.501


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_a_softmax_along_several_axes(axis, run):
    """As before opset 13; by a table, too."""
    only = node("QLinearSoftmax", ["x", "s0", "z0", "ys", "z1"], ["y"], domain="com.microsoft", axis=axis, opset=11)
    constants = [*SCALES, *ZEROS, tensor("ys", np.float32(0.004))]
    proto = with_contrib(model([only], [value("x", [2, 3, 4], UINT8)], [value("y", None, UINT8)], constants))
    x = integers(UINT8, 2, 3, 4)
    got, (expected,) = run(load_model(proto), x).astype(int), by_onnxruntime(proto, x=x)
    assert len(np.unique(expected)) > 3 and np.abs(got - expected).max() <= 1
