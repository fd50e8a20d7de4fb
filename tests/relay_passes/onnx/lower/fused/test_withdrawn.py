"""Operators that ONNX withdrew, against ONNX Runtime, which has them."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, value

CASES = {
    "Affine": {"alpha": 2.0, "beta": -0.5},
    "Affine by default": {},
    "Crop": {"border": [1, 2, 0, 1]},
    "Crop to a size": {"border": [1, 0, 0, 0], "scale": [4, 5]},
    "ImageScaler": {"scale": 0.5, "bias": [0.1, -0.2, 0.3]},
    "ParametricSoftplus": {"alpha": 0.5, "beta": 2.0},
    "ScaledTanh": {"alpha": 1.7159, "beta": 0.6666},
}


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("name", CASES)
def test_an_operator_that_onnx_has_no_more(name, opset, run):
    proto = model(
        [node(name.partition(" ")[0], ["x"], ["t"], **CASES[name]), node("Relu", ["t"], ["y"])],
        [value("x", [1, 3, 6, 7])], ["y"], opset=opset,
    )  # fmt: skip
    x = random(1, 3, 6, 7)
    (expected,) = by_onnxruntime(proto, x=x)
    np.testing.assert_allclose(run(load_model(proto), x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("Crop", {"border": [1, 2, 0]}, "3 borders"),
        ("Crop", {"border": [8, 0, 0, 0]}, r"borders \[8, 0, 0, 0\]"),
        ("Crop", {"border": [0, 0, 0, 0], "scale": [9, 9]}, r"scale \[9, 9\]"),
        ("Crop", {"border": [0, 0, 0, 0], "scale": [3]}, r"scale \[3\]"),
        ("ImageScaler", {"bias": [1.0]}, "1 biases"),
    ],
)
def test_what_does_not_fit_is_refused(kind, attributes, message):
    proto = model([node(kind, ["x"], ["y"], **attributes)], [value("x", [1, 3, 6, 7], TensorProto.FLOAT)], ["y"])
    with pytest.raises(ModelError, match=message):
        load_model(proto)
