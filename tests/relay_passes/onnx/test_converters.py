"""Operators that go straight to Relax, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer

from ..models import by_onnxruntime, model, node, random, tensor, value


@pytest.fixture(scope="module")
def detector():
    """The best boxes of those whose scores are above a half, as detectors are exported."""
    return model(
        [
            node("Greater", ["s", "half"], ["good"]),
            node("NonZero", ["good"], ["where"]),
            node("Squeeze", ["where", "zero"], ["kept"]),
            node("Gather", ["b", "kept"], ["boxes"]),
            node("Gather", ["s", "kept"], ["scores"]),
            node("Unsqueeze", ["boxes", "zero"], ["one_image"]),
            node("Unsqueeze", ["scores", "both"], ["one_class"]),
            node("NonMaxSuppression", ["one_image", "one_class", "most", "overlap"], ["found"]),
            node("Gather", ["found", "two"], ["best"], axis=1),
            node("Gather", ["boxes", "best"], ["y"]),
        ],
        [value("b", [20, 4]), value("s", [20])],
        ["y", value("found", None, TensorProto.INT64)],
        [
            tensor("half", np.float32(0.5)),
            tensor("overlap", np.float32([0.3])),
            tensor("most", np.array([4])),
            *(tensor(name, np.array(at)) for name, at in (("zero", [0]), ("both", [0, 1]), ("two", 2))),
        ],
    )


@pytest.fixture(scope="module")
def compiled(detector):
    return tvm_rammer.compile(detector, cache=False)


@pytest.mark.parametrize("most", [0.4, 0.52, 1.0, 9.0])
def test_boxes_are_chosen_of_as_many_as_the_data_leave(most, detector, compiled):
    corners = np.abs(random(20, 2)) * 2
    arrays = {"b": np.concatenate([corners, corners + 1], 1), "s": np.abs(random(20, seed=1)).clip(0, 1) * most}
    for got, want in zip(compiled.run(None, arrays), by_onnxruntime(detector, **arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_any_number_of_boxes_may_be_asked_for():
    """PyTorch's exporter asks for the largest integer of 64 bits."""
    corners = np.abs(random(1, 6, 2)) * 2
    arrays = {"b": np.concatenate([corners, corners + 1], 2), "s": np.abs(random(1, 3, 6, seed=1))}
    proto = model(
        [node("NonMaxSuppression", ["b", "s", "most", "overlap"], ["y"])],
        [value(name, list(array.shape)) for name, array in arrays.items()],
        [value("y", None, TensorProto.INT64)],
        [tensor("most", np.array([2**63 - 1])), tensor("overlap", np.float32([0.3]))],
    )
    got = tvm_rammer.compile(proto, cache=False).run(None, arrays)
    np.testing.assert_array_equal(got[0], by_onnxruntime(proto, **arrays)[0])
