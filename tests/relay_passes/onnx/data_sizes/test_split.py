"""Split into parts whose sizes come when the model runs, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError

from ...models import by_onnxruntime, model, node, random, tensor, value

INT64 = TensorProto.INT64


@pytest.fixture(scope="module")
def proto():
    nodes = [node("Split", ["x", "sizes"], ["a", "b", "c"], axis=-1)]
    return model(nodes, [value("x", [2, 6]), value("sizes", [3], INT64)], ["a", "b", "c"], opset=18)


@pytest.fixture(scope="module")
def compiled(proto):
    return tvm_rammer.compile(proto, cache=False)


@pytest.mark.parametrize("sizes", [(1, 2, 3), (0, 6, 0), (6, 0, 0), (2, 2, 2)])
def test_parts_are_those_of_onnx_runtime(sizes, proto, compiled):
    arrays = {"x": random(2, 6), "sizes": np.array(sizes)}
    for got, want in zip(compiled.run(None, arrays), by_onnxruntime(proto, **arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "sizes", [(1, 2, 2), (7, 0, 0), (-1, 7, 0), (7, 0, -1), (2**62, 2**62, 6), (2**63 - 1, 2**63 - 1, 8)]
)
def test_impossible_sizes_end_the_call(sizes, compiled):
    with pytest.raises(ModelError, match="mend the data of 'sizes'"):
        compiled(random(2, 6), np.array(sizes))


def test_some_sizes_are_known():
    """A product reads a part whose size is a constant, and the rest is as large as the data say."""
    proto = model(
        [
            node("NonZero", ["chosen"], ["found"]),
            node("Squeeze", ["found", "first"], ["rows"]),
            node("Gather", ["x", "rows"], ["g"]),
            node("Shape", ["g"], ["shape"]),
            node("Slice", ["shape", "first", "one"], ["count"]),
            node("Sub", ["count", "one"], ["others"]),
            node("Concat", ["one", "others"], ["sizes"], axis=0),
            node("Split", ["g", "sizes"], ["a", "b"], axis=0),
            node("MatMul", ["w", "a"], ["y"]),
        ],
        [value("x", [5, 3]), value("chosen", [5], TensorProto.BOOL)],
        ["y", "b"],
        [tensor("first", np.array([0])), tensor("one", np.array([1])), tensor("w", random(4, 1))],
        opset=13,
    )
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in ([1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [1] * 5):
        arrays = {"x": random(5, 3), "chosen": np.array(chosen, bool)}
        for got, want in zip(module.run(None, arrays), by_onnxruntime(proto, **arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    with pytest.raises(ModelError):
        module(random(5, 3), np.zeros(5, bool))
