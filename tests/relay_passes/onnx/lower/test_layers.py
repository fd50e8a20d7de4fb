"""Layers of convolutional networks in forms that the frontend lacks or misreads, against ONNX Runtime or ONNX."""

import numpy as np
import pytest
import tvm_ffi
from onnx import TensorProto
from tvm.ir import GenericConst

from tvm_rammer.errors import UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ...models import by_onnxruntime, model, node, random, tensor, value
from ..test_load_onnx import agree
from .judge import check


def test_the_middle_of_an_image(run):
    check(run, "CenterCropPad", [random(7, 4, 3)], [np.array([4, 7])], axes=[0, 1])


def test_dropout_that_infers_returns_a_mask(run):
    check(run, "Dropout", [random(3, 4)], outputs=2)


@pytest.mark.parametrize(("opset", "elem"), [(7, TensorProto.FLOAT), (10, TensorProto.BOOL)])
def test_the_mask_of_a_dropout_said_nothing_once(opset, elem, run):
    nodes, outputs = [node("Dropout", ["x"], ["y", "mask"])], [value("y", [2, 3]), value("mask", [2, 3], elem)]
    proto = model(nodes, [value("x", [2, 3])], outputs, opset=opset, ir=5)
    y, mask = run(load_model(proto), random(2, 3))
    expected = by_onnxruntime(proto, x=random(2, 3))
    assert mask.dtype == expected[1].dtype
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_array_equal(mask, expected[1])


def test_dropout_that_trains_is_refused():
    proto = model(
        [node("Dropout", ["x", "r", "t"], ["y"])], [value("x", [3])], ["y"],
        [tensor("r", np.float32(0.5)), tensor("t", np.array(True))],
    )  # fmt: skip
    with pytest.raises(UnsupportedOperatorError, match="Dropout 'y' drops elements at random"):
        load_model(proto)


def test_batch_normalization_that_trains(run):
    constants = [np.abs(random(3, seed=n)) + 0.5 for n in range(4)]
    check(run, "BatchNormalization", [random(2, 3, 4, 5)], constants, outputs=3, training_mode=1)


@pytest.mark.parametrize(
    ("auto_pad", "shape"),
    [("NOTSET", [10, 8]), ("SAME_UPPER", [8, 6]), ("VALID", [11, 8]), ("SAME_LOWER", [10, 6])],
)
def test_transposed_convolution_of_an_output_shape(auto_pad, shape, run):
    weights = random(2, 3, 3, 3)
    given = {} if auto_pad == "NOTSET" else {"auto_pad": auto_pad}
    check(run, "ConvTranspose", [random(1, 2, 3, 3)], [weights], output_shape=shape, strides=[3, 2], **given)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("kernel", "more"), [(2, 2), (2, 1), (4, 2)])
def test_transposed_convolutions_padded_to_the_same_size(kernel, more, auto_pad, run):
    """The output's padding is a part of that size."""
    given = {"strides": [3, 3], "auto_pad": auto_pad, "output_padding": [more, 0]}
    check(run, "ConvTranspose", [random(1, 2, 3, 3)], [random(2, 3, kernel, 3)], **given)


def test_zeros_at_either_end_of_a_transposed_convolution_are_refused():
    """ONNX has them at the begin, ONNX Runtime at the end."""
    nodes = [node("ConvTranspose", ["x", "w"], ["y"], auto_pad="SAME_UPPER", output_shape=[8], strides=[2])]
    proto = model(nodes, [value("x", [1, 2, 3])], ["y"], [tensor("w", random(2, 3, 3))])
    with pytest.raises(UnsupportedOperatorError, match="an output_shape larger than all that it makes, and auto_pad"):
        load_model(proto)


@pytest.mark.parametrize(
    ("kernel", "given"),
    [
        ([2], {"dilations": [2]}),
        ([3], {"dilations": [3], "strides": [2], "pads": [2, 5], "output_padding": [1]}),
        ([2, 3], {"dilations": [1, 2], "strides": [2, 1], "group": 2, "pads": [1, 3, 0, 4]}),
        ([2, 2], {"dilations": [2, 2], "strides": [2, 3], "auto_pad": "SAME_LOWER"}),
        ([3, 2], {"dilations": [2, 1], "output_shape": [6, 4]}),
    ],
)
def test_dilated_transposed_convolutions_spread_nothing(kernel, given, run):
    """An infinity meets the taps, and no zeros between them."""
    x = random(1, 4, *[4] * len(kernel))
    x[0, 1, ..., 2], x[0, 2, ..., 1] = np.inf, np.nan
    fixed = [tensor("w", random(4, 3, *kernel)), tensor("b", random(3 * given.get("group", 1)))]
    agree(
        run, model([node("ConvTranspose", ["x", "w", "b"], ["y"], **given)], [value("x", x.shape)], ["y"], fixed), x=x
    )


def test_the_positions_of_maxima(run):
    check(run, "MaxPool", [random(1, 2, 6, 6)], outputs=2, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])


def test_boxes_whose_overlap_is_the_threshold_stay(run):
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 2], [0, 5, 1, 6], [0, 0, 1, 1]]], "float32")
    scores = np.array([[[0.9, 0.8, -0.5, 0.7]]], "float32")
    fixed = [np.array([3]), np.array([0.5], "float32")]
    check(run, "NonMaxSuppression", [boxes, scores], fixed)


def test_boxes_of_negative_scores_are_in_their_order(run):
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.05], [4, 4, 5, 5], [8, 8, 9, 9], [2, 2, 3, 3]]], "float32")
    scores = np.array([[[-1.5, -0.5, 0, 2e30, -3e38]]], "float32")
    constants = [np.array([5]), np.array([0.5], "float32")]
    check(run, "NonMaxSuppression", [boxes, scores], constants)
    check(run, "NonMaxSuppression", [boxes, scores], [*constants, np.array([-1.0], "float32")])


@pytest.mark.parametrize("least", [0.1, -1.0])
def test_boxes_whose_score_is_no_number_are_not_found(least, run):
    boxes = np.zeros((1, 6, 4), "float32")
    scores = np.array([[[-2.0, np.nan, -1.7, np.nan, np.nan, 0.2]]], "float32")
    check(run, "NonMaxSuppression", [boxes, scores], [np.array([4]), *np.array([[0.5], [least]], "float32")])


@pytest.mark.parametrize(
    ("size", "corners"), [([2, 3, 1, 4], 0), ([2, 3, 2, 4], 1), ([2, 1, 3, 2, 5], 0), ([2, 1, 3, 2, 5], 1)]
)
def test_grids(size, corners, run):
    theta = random(2, len(size) - 2, len(size) - 1)
    theta[0, 0, 1] = np.nan
    check(run, "AffineGrid", [theta], [np.array(size)], align_corners=corners)


def test_corners_of_a_single_row_are_refused():
    """They are at -1 by ONNX's reference, at 1 by ONNX Runtime, and at 0 by PyTorch."""
    nodes = [node("AffineGrid", ["theta", "size"], ["y"], align_corners=1)]
    proto = model(nodes, [value("theta", [1, 2, 3])], ["y"], [tensor("size", np.array([1, 1, 1, 5]))], opset=20)
    with pytest.raises(UnsupportedOperatorError, match="aligns the corners of a single row or column"):
        load_model(proto)


def constants(mod):
    """The shapes of all constants of a module."""
    found = []
    tvm_ffi.structural_walk(
        mod["main"], [(GenericConst, lambda c: found.append(tuple(map(int, c.ty.shape))))], order="pre"
    )
    return found


@pytest.mark.parametrize(
    ("image", "kernel", "how", "left"),
    [
        ((1, 2, 4, 4), (3, 2, 3, 3), {"dilations": [6, 6], "pads": [6] * 4}, (1, 1)),
        ((1, 2, 5, 4), (3, 2, 5, 3), {"dilations": [3, 1], "pads": [6, 1, 6, 1]}, (3, 3)),
        (
            (2, 4, 6, 6),
            (4, 1, 3, 3),
            {"dilations": [7, 2], "pads": [9, 4, 5, 0], "strides": [2, 2], "group": 4},
            (2, 3),
        ),
        ((1, 2, 4), (3, 2, 3), {"dilations": [5], "pads": [2, 8], "strides": [8]}, (2,)),
        ((1, 2, 3), (3, 2, 2), {"dilations": [9], "pads": [4, 4]}, (2,)),
        ((1, 2, 3), (3, 2, 1), {"pads": [4, 4]}, (1,)),
    ],
)
def test_taps_that_meet_no_pixel_are_left_out(image, kernel, how, left, run):
    mod = check(run, "Conv", [random(*image)], [random(*kernel), random(kernel[0])], **how)
    assert (*kernel[:2], *left) in constants(mod)


def test_taps_of_infinity_stay():
    weights = random(3, 2, 3)
    weights[0, 0, 0] = np.inf
    nodes = [node("Conv", ["x", "w"], ["y"], dilations=[6], pads=[6, 6])]
    assert (3, 2, 3) in constants(load_model(model(nodes, [value("x", [1, 2, 4])], ["y"], [tensor("w", weights)])))
