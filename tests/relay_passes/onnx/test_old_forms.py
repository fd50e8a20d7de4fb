"""Operators as files of older opsets write them, with attributes where there are inputs now, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer

from ..models import by_onnxruntime, model, node, random, tensor, value

X = ("x", (2, 6))
IMAGE = ("x", (1, 2, 3, 4))
TWICE = tensor("scales", np.array([1, 1, 2, 2], np.float32))
SQUARE = tensor("columns", np.array([3, 2, 1], np.int64))
PER_CHANNEL = [tensor(name, np.array([1, 0.5, 2], np.float32)) for name in "abcd"]

FORMS = {
    "Split": ((2, 7, 8, 9, 10, 11, 12), node("Split", ["x"], ["y", "z"], axis=1, split=[4, 2]), [X], []),
    "Split, even": ((2, 7, 11, 12), node("Split", ["x"], ["y", "z", "w"], axis=1), [X], []),
    "Split, from the end": ((11, 12), node("Split", ["x"], ["y", "z"], axis=-1, split=[1, 5]), [X], []),
    "Pad": ((2, 7, 10), node("Pad", ["x"], ["y"], pads=[0, 1, 2, 3], value=1.5), [X], []),
    "Pad, mirrored": ((2, 7, 10), node("Pad", ["x"], ["y"], mode="reflect", pads=[0, 1, 0, 2]), [X], []),
    "Clip": ((6, 7, 10), node("Clip", ["x"], ["y"], min=-1.0, max=0.5), [X], []),
    "Clip, above": ((6, 7, 10), node("Clip", ["x"], ["y"], max=0.5), [X], []),
    "TopK": ((7, 9), node("TopK", ["x"], ["y", "i"], k=2, axis=1), [X], []),
    "Upsample": ((7, 8), node("Upsample", ["x"], ["y"], mode="nearest", scales=[1.0, 1.0, 2.0, 3.0]), [IMAGE], []),
    "Upsample, by an input": ((9,), node("Upsample", ["x", "scales"], ["y"], mode="linear"), [IMAGE], [TWICE]),
    "Resize": ((10,), node("Resize", ["x", "scales"], ["y"], mode="linear"), [IMAGE], [TWICE]),
    "Slice": ((1, 7, 9), node("Slice", ["x"], ["y"], axes=[1], starts=[1], ends=[-1]), [X], []),
    "Squeeze": ((1, 7, 11, 12), node("Squeeze", ["x"], ["y"], axes=[0]), [("x", (1, 6))], []),
    "Unsqueeze": ((1, 7, 11, 12), node("Unsqueeze", ["x"], ["y"], axes=[0, 2]), [X], []),
    "ReduceSum": ((1, 7, 11, 12), node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0), [X], []),
    "Dropout": ((7, 10, 11), node("Dropout", ["x"], ["y"], ratio=0.4), [X], []),
    "Softmax": ((1, 7, 11, 12), node("Softmax", ["x"], ["y"], axis=1), [("x", (2, 3, 4))], []),
    "Max": ((6, 7, 8), node("Max", ["x", "z"], ["y"]), [X, ("z", (2, 6))], []),
    "Mean": ((6, 7, 8), node("Mean", ["x", "z", "x"], ["y"]), [X, ("z", (2, 6))], []),
    "Sum, broadcast": ((8, 12), node("Sum", ["x", "z"], ["y"]), [X, ("z", (1, 6))], []),
    "Gemm": ((7, 9, 10), node("Gemm", ["x", "z", "c"], ["y"], transB=1), [X, ("z", (5, 6)), ("c", (5,))], []),
    "Tile": ((6, 7, 12), node("Tile", ["x", "columns"], ["y"]), [("x", (2, 1, 3))], [SQUARE]),
    "BatchNormalization": (
        (7, 9),
        node("BatchNormalization", ["x", *"abcd"], ["y"]),
        [("x", (2, 3, 4, 4))],
        PER_CHANNEL,
    ),
}
LOGIC = ("And", "Or", "Xor")
CASES = [(name, opset) for name, (opsets, *_) in FORMS.items() for opset in opsets]


@pytest.mark.parametrize(("name", "opset"), CASES)
def test_a_form_of_an_older_opset(name, opset):
    _, one, inputs, constants = FORMS[name]
    outputs = [output for output in one.output if output != "i"]
    proto = model([one], [value(*each) for each in inputs], outputs, constants, opset=opset)
    given = {called: 3 * random(*shape, seed=at) for at, (called, shape) in enumerate(inputs)}
    proto_now = model([one], [value(*each) for each in inputs], outputs, constants, opset=max(7, opset))
    for got, want in zip(
        tvm_rammer.compile(proto, cache=False).run(None, given), by_onnxruntime(proto_now, **given), strict=True
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("kind", LOGIC)
def test_logic_that_broadcasts_from_an_axis_on(kind, opset):
    """And what comes after it is converted, by the shape that it has."""
    bits = [value("x", (2, 3), TensorProto.BOOL), value("m", (2,), TensorProto.BOOL)]
    nodes = [
        node(kind, ["x", "m"], ["b"], broadcast=1, axis=0),
        node("Cast", ["b"], ["f"], to="FLOAT" if opset < 6 else 1),
        node("Softmax", ["f"], ["y"], axis=1),
    ]
    x, m = np.array([[True, False, True], [True, False, False]]), np.array([True, False])
    (got,) = tvm_rammer.compile(model(nodes, bits, ["y"], opset=opset), cache=False).run(None, {"x": x, "m": m})
    powers = np.exp(getattr(np, f"logical_{kind.lower()}")(x, m[:, None]).astype("float32"))
    np.testing.assert_allclose(got, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_recurrent_layer_of_long_ago(kind, gates, opset):
    constants = [tensor("w", random(1, 2 * gates, 3, seed=1)), tensor("r", random(1, 2 * gates, 2, seed=2))]
    layer = node(kind, ["x", "w", "r"], ["s", "h"], hidden_size=2)
    nodes = [layer, node("Softmax", ["h"], ["y"], axis=2)]
    then = model(nodes, [value("x", (4, 2, 3))], ["s", "y"], constants, opset=opset)
    now = model(nodes, [value("x", (4, 2, 3))], ["s", "y"], constants, opset=7)
    then.graph.node[0].attribute.append(helper.make_attribute("output_sequence", 1))
    x = random(4, 2, 3)
    for got, want in zip(
        tvm_rammer.compile(then, cache=False).run(None, {"x": x}), by_onnxruntime(now, x=x), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        ([node("Pad", ["x"], ["y"], paddings=[0, 0, 1, 0, 0, 0, 0, 2], value=1.5)], (1, 2, 4, 6)),
        ([node("LpPool", ["x"], ["y"], kernel_shape=[2, 2], p=3.0)], (1, 2, 2, 3)),
        ([node("GlobalLpPool", ["x"], ["y"], p=1.0)], (1, 2, 1, 1)),
    ],
)
def test_what_only_opset_1_writes_so(nodes, want):
    now = node(nodes[0].op_type, ["x"], ["y"])
    for attribute in nodes[0].attribute:
        given = helper.get_attribute_value(attribute)
        given = int(given) if attribute.name == "p" else given
        name = "pads" if attribute.name == "paddings" else attribute.name
        now.attribute.append(helper.make_attribute(name, given))
    x = random(*IMAGE[1])
    (expected,) = by_onnxruntime(model([now], [value(*IMAGE)], ["y"], opset=7), x=x)
    (got,) = tvm_rammer.compile(model(nodes, [value(*IMAGE)], ["y"], opset=1), cache=False).run(None, {"x": x})
    assert got.shape == expected.shape == want
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
