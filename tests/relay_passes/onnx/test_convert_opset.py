"""Attributes that nodes leave out are the defaults of the file's opset, as numbers of float32."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer

from ..models import model, node, value

X = np.array([[0.3, -2.6, 0.5, -2.3]])


def float32(number: float) -> float:
    return float(np.float32(number))


def leaky_relu(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, float32(0.01) * x, x)


def hard_sigmoid(x: np.ndarray) -> np.ndarray:
    return np.clip(float32(0.2) * x + 0.5, 0, 1)


def selu(alpha: float, gamma: float, x: np.ndarray) -> np.ndarray:
    return float32(gamma) * np.where(x > 0, x, float32(alpha) * np.expm1(x))


CASES = [
    ("LeakyRelu", 18, leaky_relu),
    ("HardSigmoid", 18, hard_sigmoid),
    ("Selu", 18, lambda x: selu(1.67326319217681884765625, 1.05070102214813232421875, x)),
    ("LeakyRelu", 1, leaky_relu),
    ("HardSigmoid", 1, hard_sigmoid),
    ("Selu", 1, lambda x: selu(1.6732, 1.0507, x)),
]


@pytest.mark.parametrize(("operator", "opset", "expected"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_defaults_are_those_of_the_opset(operator, opset, expected):
    proto = model(
        [node(operator, ["x"], ["y"])],
        [value("x", [1, 4], TensorProto.DOUBLE)], [value("y", [1, 4], TensorProto.DOUBLE)], opset=opset, ir=4,
    )  # fmt: skip
    np.testing.assert_allclose(tvm_rammer.compile(proto, cache=False)(X), expected(X), rtol=1e-12)


def test_epsilon_of_a_normalisation_is_a_number_of_float32():
    names = ("scale", "bias", "mean", "variance")
    inputs = [value("x", [1, 4], TensorProto.DOUBLE), *(value(name, [4], TensorProto.DOUBLE) for name in names)]
    proto = model(
        [node("BatchNormalization", ["x", *names], ["y"])],
        inputs, [value("y", [1, 4], TensorProto.DOUBLE)], opset=17,
    )  # fmt: skip
    variance = np.full(4, 1e-6)
    got = tvm_rammer.compile(proto, cache=False)(X, np.ones(4), np.zeros(4), np.zeros(4), variance)
    np.testing.assert_allclose(got, X / np.sqrt(variance + float32(1e-5)), rtol=1e-9)


def test_what_is_stated_stays():
    proto = model(
        [node("LeakyRelu", ["x"], ["y"], alpha=0.25)],
        [value("x", [1, 4], TensorProto.DOUBLE)], [value("y", [1, 4], TensorProto.DOUBLE)],
    )  # fmt: skip
    np.testing.assert_array_equal(tvm_rammer.compile(proto, cache=False)(X), np.where(X < 0, X / 4, X))


@pytest.mark.parametrize("elem", [TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE])
def test_bounds_that_are_attributes_have_the_type_of_what_they_bound(elem):
    proto = model(
        [node("Clip", ["x"], ["y"], min=-0.5, max=0.25)],
        [value("x", [1, 4], elem)], [value("y", [1, 4], elem)], opset=6, ir=4,
    )  # fmt: skip
    x = X.astype(helper.tensor_dtype_to_np_dtype(elem))
    np.testing.assert_array_equal(tvm_rammer.compile(proto, cache=False)(x), np.clip(x, -0.5, 0.25))
