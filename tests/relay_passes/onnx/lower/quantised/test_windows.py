"""Convolutions of bytes: as products of the bytes of their windows, or in floating point where they are none."""

import numpy as np
import pytest
from onnx import numpy_helper

from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, op_names, tensor, value, with_contrib
from .byte_values import INT8, INT32, NUMPY, UINT8, integers, off_by_one_at_most, weights_of


def test_integer_convolutions_take_no_second_one_where_one_is_exact():
    def convolutions(w, zero=None):
        given = ["x", "w"] if zero is None else ["x", "w", "", "z"]
        results, constants = [value("y", None, INT32)], [tensor("w", w), *([] if zero is None else [tensor("z", zero)])]
        only = node("ConvInteger", given, ["y"], group=2)
        proto = model([only], [value("x", [1, 1204, 2, 1], UINT8)], results, constants)
        return op_names(load_model(proto)).count("nn.conv2d")

    assert convolutions(np.full((8, 602, 1, 1), 100, "int8")) == 1
    assert convolutions(np.full((8, 602, 1, 1), 120, "int8")) == 2
    assert convolutions(np.full((8, 602, 1, 1), 120, "uint8"), np.uint8(128)) == 1
    zeros = np.array([128] * 7 + [0], "uint8")
    assert convolutions(np.full((8, 602, 1, 1), 120, "uint8"), zeros) == 2


@pytest.mark.parametrize("channels", [8, 300])
@pytest.mark.parametrize("groups", [1, 2])
def test_integer_convolutions_are_exact(channels, groups, run):
    proto = model(
        [node("ConvInteger", ["x", "w", "zx"], ["y"], pads=[1, 1, 1, 1], strides=[2, 1], group=groups)],
        [value("x", [1, channels, 6, 5], UINT8)], [value("y", None, INT32)],
        [tensor("w", integers(UINT8, 4, channels // groups, 3, 3)), tensor("zx", np.uint8(128))],
    )  # fmt: skip
    x = integers(UINT8, 1, channels, 6, 5)
    np.testing.assert_array_equal(run(load_model(proto), x), by_onnxruntime(proto, x=x)[0])


@pytest.mark.parametrize("each", [False, True])
def test_quantised_convolutions(each, run):
    scale = np.linspace(0.002, 0.01, 6).astype("float32") if each else np.float32(0.005)
    zero = np.zeros(6, "int8") if each else np.int8(0)
    constants = [
        tensor("xs", np.float32(0.02)), tensor("xz", np.uint8(120)), tensor("w", weights_of(6, 4, 3, 3)),
        tensor("ws", scale), tensor("wz", zero), tensor("ys", np.float32(0.03)), tensor("yz", np.uint8(100)),
        tensor("b", np.arange(-3000, 3000, 1000, dtype="int32")),
    ]  # fmt: skip
    only = node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], pads=[1, 1, 1, 1])
    proto = model([only], [value("x", [2, 4, 7, 7], UINT8)], [value("y", None, UINT8)], constants)
    off_by_one_at_most(run, proto, x=integers(UINT8, 2, 4, 7, 7))


@pytest.mark.parametrize("kind", [UINT8, INT8])
@pytest.mark.parametrize(("channels", "weights"), [(8, INT8), (61, UINT8)])
def test_a_padded_convolution_whose_zero_point_only_the_run_tells(channels, weights, kind, run):
    w = integers(weights, 6, channels, 3, 3)
    how = {"pads": [1, 1, 0, 2], "strides": [1, 2]}
    proto = model(
        [node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], **how)],
        [value("x", [2, channels, 9, 10], kind), value("xz", [], kind)], [value("y", None, INT32)],
        [tensor("w", w), tensor("wz", w.dtype.type(3))],
    )  # fmt: skip
    names = op_names(load_model(proto))
    assert "matmul" in names and "nn.conv2d" not in names
    x = integers(kind, 2, channels, 9, 10)
    for zero in (-5 % 128, 0):
        want = _convolved(x.astype("float64") - zero, w.astype("float64") - 3, how).transpose(0, 3, 1, 2)
        np.testing.assert_array_equal(run(load_model(proto), x, np.array(zero, NUMPY[kind])), want)


def convolution_of_bytes(**how):
    """A QLinearConv of signed or unsigned bytes."""
    channels, size = how.pop("channels", 8), how.pop("size", 3)
    data, weights = how.pop("data", UINT8), integers(how.pop("weights", INT8), 6, channels, size, size)
    zero = NUMPY[data](7 if how.pop("zero", True) else 0)
    constants = [
        tensor("xs", np.float32(0.02)), tensor("xz", zero), tensor("w", weights), tensor("ws", np.float32(0.005)),
        tensor("wz", weights.dtype.type(3)), tensor("ys", np.float32(0.3)), tensor("yz", np.array(9, NUMPY[data])),
        tensor("b", np.arange(-300, 300, 100, dtype="int32")),
    ]  # fmt: skip
    only = node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], **how)
    return model([only], [value("x", [2, channels, 9, 10], data)], [value("y", None, data)], constants)


CONVOLUTIONS = {
    "padded": {"pads": [1, 0, 2, 1]},
    "strides": {"strides": [2, 3], "pads": [1, 1, 1, 1]},
    "dilated": {"dilations": [2, 1]},
    "no zero point": {"zero": False, "pads": [1, 1, 1, 1]},
    "signed": {"data": INT8, "pads": [1, 1, 1, 1]},
    "signed, unsigned weights": {"data": INT8, "weights": UINT8},
    "61 channels": {"channels": 61, "pads": [1, 1, 1, 1]},
    "27 channels, signed, unsigned weights": {"channels": 27, "data": INT8, "weights": UINT8, "pads": [0, 1, 0, 0]},
    "15 channels, 1x1, strides": {"channels": 15, "size": 1, "strides": [2, 1], "zero": False, "weights": UINT8},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_products_of_bytes(name, run):
    proto = convolution_of_bytes(**CONVOLUTIONS[name])
    x = integers(CONVOLUTIONS[name].get("data", UINT8), 2, CONVOLUTIONS[name].get("channels", 8), 9, 10)
    names = op_names(load_model(proto))
    assert "matmul" in names and "nn.conv2d" not in names
    got = run(load_model(proto), x)
    w, how = numpy_helper.to_array(proto.graph.initializer[2]).astype("float64") - 3, CONVOLUTIONS[name]
    sums = _convolved(x.astype("float64") - (7 if how.get("zero", True) else 0), w, how) + np.arange(-300, 300, 100)
    limits = np.iinfo(x.dtype)
    want = np.clip(np.rint(sums.transpose(0, 3, 1, 2) * 0.02 * 0.005 / 0.3) + 9, limits.min, limits.max)
    assert got.dtype == x.dtype and np.abs(got - want).max() <= 1 and (got != want).mean() < 0.01


def _convolved(x, w, how):
    """Sums of products, channels last."""
    (top, left, bottom, right), (sy, sx) = how.get("pads", [0] * 4), how.get("strides", [1, 1])
    dy, dx = how.get("dilations", [1, 1])
    x = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
    windows = np.lib.stride_tricks.sliding_window_view(
        x, [(n - 1) * d + 1 for n, d in zip(w.shape[2:], (dy, dx), strict=True)], (2, 3)
    )
    return np.einsum("ncyxij,fcij->nyxf", windows[:, :, ::sy, ::sx, ::dy, ::dx], w)


def test_what_comes_after_an_operator_that_onnx_does_not_know_is_of_bytes_too():
    proto = with_contrib(convolution_of_bytes())
    added = node("QLinearAdd", ["x", "xs", "xz", "x", "xs", "xz", "xs", "xz"], ["twice"], domain="com.microsoft")
    proto.graph.node[0].input[0] = "twice"
    proto.graph.node.insert(0, added)
    assert "nn.conv2d" not in op_names(load_model(proto))
