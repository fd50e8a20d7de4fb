"""Resize in all its forms, against ONNX's reference; the old ones against ONNX Runtime."""

import numpy as np
import pytest

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model

from ...models import model, node, random, tensor, value
from ..test_load_onnx import agree
from .judge import by_reference


def resize(scales=None, sizes=None, roi=None, shape=(1, 2, 5, 6), **attributes):
    names, constants = ["x"], []
    for name, array, dtype in (("roi", roi, "float32"), ("scales", scales, "float32"), ("sizes", sizes, "int64")):
        names.append(name if array is not None else "")
        constants += [tensor(name, np.array(array, dtype))] if array is not None else []
    return model([node("Resize", names, ["y"], **attributes)], [value("x", shape)], ["y"], constants, opset=19, ir=9)


@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "linear"},
        {"mode": "linear", "antialias": 1},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
        {"mode": "cubic"},
        {"mode": "cubic", "antialias": 1},
        {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
        {"mode": "nearest"},
        {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"},
        {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
    ],
    ids=str,
)
@pytest.mark.parametrize("scales", [(1, 1, 0.6, 0.8), (1, 1, 2.5, 1.7)], ids=["smaller", "larger"])
def test_fractional_scales(attributes, scales, run):
    by_reference(run, resize(scales=scales, **attributes), x=random(1, 2, 5, 6))


@pytest.mark.parametrize(("mode", "reach"), [("linear", 1), ("cubic", 2)])
def test_infinity_stays_among_the_results_that_read_it(mode, reach, run):
    image = random(1, 1, 9, 8)
    image[0, 0, 4, 3] = np.inf
    got = run(load_model(resize(scales=(1, 1, 2, 2), mode=mode, shape=image.shape)), image)
    want = np.zeros((18, 16), bool)  # of two results for each element, which lie around it
    want[2 * (4 - reach) + 1 : 2 * (4 + reach) + 1, 2 * (3 - reach) + 1 : 2 * (3 + reach) + 1] = True
    np.testing.assert_array_equal(~np.isfinite(got[0, 0]), want)


def test_sizes_beside_scales_without_elements(run):
    """As exporters wrote it for opset 11, where scales were no option."""
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    proto = resize(scales=(), sizes=(1, 2, 10, 12), roi=(), **attributes)
    by_reference(run, proto, x=random(1, 2, 5, 6))


def test_channels_are_resized_too(run):
    by_reference(run, resize(sizes=(2, 3, 7, 4), mode="linear"), x=random(1, 2, 5, 6))


def test_a_part_of_the_image_with_a_value_outside(run):
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    proto = resize(sizes=(1, 2, 3, 4), roi=(0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7), mode="linear", **attributes)
    by_reference(run, proto, x=random(1, 2, 5, 6))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_aspect_ratio_is_kept(policy, run):
    proto = resize(sizes=(7, 8), axes=[2, 3], keep_aspect_ratio_policy=policy)
    by_reference(run, proto, x=random(1, 2, 5, 6))


@pytest.mark.parametrize("op", ["Resize", "Upsample"])
def test_old_resizes_read_asymmetrically(op, run):
    opset = 10 if op == "Resize" else 9
    nodes = [node(op, ["x", "scales"], ["y"], mode="linear")]
    constants = [tensor("scales", np.array([1, 1, 2, 3], "float32"))]
    agree(run, model(nodes, [value("x", [1, 2, 3, 4])], ["y"], constants, opset=opset), x=random(1, 2, 3, 4))


@pytest.mark.parametrize("scales", [(1, 1, 0.5, 0.6), (1, 1, 0.7, 1.5), (1, 1, 1.1, 1.3), (2, 1, 0.9, 0.45)])
def test_old_resizes_take_the_element_behind_where_they_shrink(scales, run):
    nodes = [node("Resize", ["x", "scales"], ["y"], mode="nearest")]
    constants = [tensor("scales", np.array(scales, "float32"))]
    agree(run, model(nodes, [value("x", [1, 2, 11, 13])], ["y"], constants, opset=10), x=random(1, 2, 11, 13))


@pytest.mark.parametrize("op", ["Resize", "Upsample"])
def test_old_resizes_do_so_in_a_model_that_onnx_converts(op, run):
    """As one with an old Slice or recurrent layer; the converter gives the result of an Upsample another name."""
    opset = 10 if op == "Resize" else 9
    layer = node("RNN", ["a", "w", "r"], ["", "b"], hidden_size=4)
    nodes = [node(op, ["x", "scales"], ["a"], mode="linear"), layer, node("Identity", ["b"], ["y"])]
    constants = [tensor("scales", np.array([2, 1, 3], "float32"))]
    constants += [tensor("w", random(1, 4, 6, seed=1)), tensor("r", random(1, 4, 4, seed=2))]
    agree(run, model(nodes, [value("x", [3, 2, 2])], ["y"], constants, opset=opset), x=random(3, 2, 2))


def test_old_resizes_that_shrink_in_a_model_that_onnx_converts(run):
    layer = node("RNN", ["a", "w", "r"], ["", "b"], hidden_size=4)
    nodes = [node("Resize", ["x", "scales"], ["a"]), layer, node("Identity", ["b"], ["y"])]
    constants = [tensor("scales", np.array([0.7, 1, 1.5], "float32"))]
    constants += [tensor("w", random(1, 4, 6, seed=1)), tensor("r", random(1, 4, 4, seed=2))]
    agree(run, model(nodes, [value("x", [5, 2, 4])], ["y"], constants, opset=10), x=random(5, 2, 4))


@pytest.mark.parametrize("sizes", [(1, 2, -7, 4), (1, 2, 0, 4)])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ModelError, match="Resize 'y' has sizes"):
        load_model(resize(sizes=sizes))
