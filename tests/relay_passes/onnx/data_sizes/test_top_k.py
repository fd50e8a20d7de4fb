"""TopK of as many elements as the data say, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer

from ...models import by_onnxruntime, model, node, random, value

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


@pytest.mark.parametrize(("axis", "largest"), [(1, 1), (0, 0), (-1, 0)])
def test_of_a_known_shape(axis, largest):
    nodes, x = [node("TopK", ["x", "k"], ["y", "places"], axis=axis, largest=largest)], random(3, 5)
    proto = model(nodes, [value("x", [3, 5]), value("k", [1], INT64)], ["y", value("places", ["a", "b"], INT64)])
    module = tvm_rammer.compile(proto, cache=False)
    for count in range(x.shape[axis] + 1):
        feed = {"x": x, "k": np.array([count])}
        for got, want in zip(module.run(None, feed), by_onnxruntime(proto, **feed), strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(tvm_rammer.ModelError, match="index outside of the"):
        module(x, np.array([x.shape[axis] + 1]))
    with pytest.raises(tvm_rammer.ModelError, match="a shape that no tensor can have"):
        module(x, np.array([-1]))


def test_at_most_so_many_of_the_chosen_ones():
    """As detectors have it."""
    nodes = [
        node("Compress", ["x", "mask"], ["chosen"], axis=0),
        node("Shape", ["chosen"], ["shape"], start=0, end=1),
        node("Min", ["shape", "most"], ["k"]),
        node("TopK", ["chosen", "k"], ["y", "places"], axis=0),
    ]
    inputs = [value("x", [6]), value("mask", [6], BOOL), value("most", [1], INT64)]
    proto, x = model(nodes, inputs, ["y", value("places", ["a"], INT64)]), random(6)
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in (0, 2, 6):
        for most in (0, 3, 9):
            feed = {"x": x, "mask": np.arange(6) < chosen, "most": np.array([most])}
            for got, want in zip(module.run(None, feed), by_onnxruntime(proto, **feed), strict=True):
                np.testing.assert_array_equal(got, want)


def test_by_an_attribute():
    results, x = ["y", value("places", [3], INT64)], random(6)
    proto = model([node("TopK", ["x"], ["y", "places"], axis=0, k=3)], [value("x", [6])], results, opset=9)
    for got, want in zip(tvm_rammer.compile(proto, cache=False)(x), by_onnxruntime(proto, x=x), strict=True):
        np.testing.assert_array_equal(got, want)
