"""Layers of as many rows as the data chose, as in the second stage of a detector, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer

from ...models import by_onnxruntime, model, node, random, tensor, value

CHOSEN = [node("Compress", ["x", "mask"], ["rows"], axis=0), node("Reshape", ["rows", "images"], ["image"])]
BYTES = node("QuantizeLinear", ["rows", "scale", "zero"], ["bytes"])
TENSORS = [
    tensor("images", np.array([-1, 1, 2, 2])),
    tensor("scale", np.array(0.1, np.float32)),
    tensor("zero", np.array(3, np.uint8)),
    tensor("none", np.array(0, np.int8)),
    tensor("matrix", np.arange(12, dtype=np.int8).reshape(4, 3)),
    tensor("filters", np.arange(8, dtype=np.int8).reshape(2, 1, 2, 2)),
    tensor("five", np.array(5)),
    tensor("first", np.array(0)),
    tensor("labels", np.array([1, 0, -1])),
    tensor("values", np.array([-1, 2], np.float32)),
]
PARAMETERS = ["scale", "none", "scale", "zero"]
LAYERS = {
    "LpNormalization": [node("LpNormalization", ["rows"], ["y"], axis=1)],
    "OneHot": [
        node("ArgMax", ["rows"], ["labels_"], axis=1, keepdims=0),
        node("OneHot", ["labels_", "five", "values"], ["y"], axis=0),
    ],
    "OneHot of as many places": [
        node("Shape", ["rows"], ["shape"]),
        node("Gather", ["shape", "first"], ["depth"]),
        node("OneHot", ["labels", "depth", "values"], ["y"]),
    ],
    "MaxPool": [node("MaxPool", ["image"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_UPPER")],
    "AveragePool": [node("AveragePool", ["image"], ["y"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)],
    "QLinearMatMul": [
        BYTES,
        node("QLinearMatMul", ["bytes", "scale", "zero", "matrix", *PARAMETERS], ["product"]),
        node("DequantizeLinear", ["product", "scale", "zero"], ["y"]),
    ],
    "QLinearConv": [
        node("QuantizeLinear", ["image", "scale", "zero"], ["bytes"]),
        node("QLinearConv", ["bytes", "scale", "zero", "filters", *PARAMETERS], ["product"]),
        node("DequantizeLinear", ["product", "scale", "zero"], ["y"]),
    ],
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    inputs = [value("x", [6, 4]), value("mask", [6], TensorProto.BOOL)]
    proto, x = model([*CHOSEN, *LAYERS[name]], inputs, ["y"], TENSORS), random(6, 4)
    module = tvm_rammer.compile(proto, cache=False)
    for count in (3, 1, 6):
        feed = {"x": x, "mask": np.arange(6) < count}
        np.testing.assert_allclose(module.run(None, feed)[0], by_onnxruntime(proto, **feed)[0], rtol=1e-6, atol=1e-6)
