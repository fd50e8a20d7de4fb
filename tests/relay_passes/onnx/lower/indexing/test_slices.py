"""Assignments to slices between computed ends, as exporters write them, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.errors import ModelError

from ....models import by_onnxruntime, model, node, random, tensor, value

X, ROW = random(2, 7, 3), random(2, 1, 3, seed=1)
INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
CONSTANTS = {"axis": [1], "one": [1], "zero": [0], "two": [2], "three": [3], "none": np.array([], np.int64)}
TENSORS = [tensor(name, np.array(array, np.int64)) for name, array in CONSTANTS.items()]
TENSORS += [tensor("column", np.array([1, -1, 1])), tensor("step", np.array(1))]


def assignment(x="x", begin="begin", end="end", row="row", result="y"):
    """x[:, begin:end] = row"""
    return [
        node("Slice", [x, begin, end, "axis", "one"], ["part"]),
        node("Shape", ["part"], ["sizes"]),
        node("Expand", [row, "sizes"], ["rows"]),
        node("Reshape", [begin, "none"], ["first"]),
        node("Squeeze", [end], ["last"]),
        node("Range", ["first", "last", "step"], ["places"]),
        node("Reshape", ["places", "column"], ["upright"]),
        node("Slice", ["sizes", "zero", "one", "zero"], ["before"]),
        node("Slice", ["sizes", "two", "three", "zero"], ["behind"]),
        node("Concat", ["before", "one", "behind"], ["repeats"], axis=0),
        node("Tile", ["upright", "repeats"], ["indices"]),
        node("ScatterElements", [x, "indices", "rows"], [result], axis=1),
    ]


def single(row=ROW.shape):
    inputs = [value("x", X.shape), value("row", row), value("begin", [1], INT64), value("end", [1], INT64)]
    return model(assignment(), inputs, ["y"], TENSORS)


def test_one_row_for_all_that_are_between_the_ends():
    module = tvm_rammer.compile(single(), cache=False)
    assert not module.compilation.stock_calls
    for begin, end in [(0, 1), (6, 7), (2, 5), (0, 7), (3, 3), (7, 7), (-3, -1), (-7, -6)]:
        feed = {"x": X, "row": ROW, "begin": np.array([begin]), "end": np.array([end])}
        np.testing.assert_array_equal(module.run(None, feed)[0], by_onnxruntime(single(), **feed)[0])


def test_a_row_of_fewer_axes_is_broadcast():
    module = tvm_rammer.compile(single(row=(1, 3)), cache=False)
    feed = {"x": X, "row": ROW[0], "begin": np.array([1]), "end": np.array([4])}
    np.testing.assert_array_equal(module.run(None, feed)[0], by_onnxruntime(single(row=(1, 3)), **feed)[0])


def test_as_many_rows_as_the_slice_has():
    """By the positions themselves; slices of another length are refused when they come."""
    rows, proto = random(2, 4, 3, seed=3), single(row=(2, 4, 3))
    module = tvm_rammer.compile(proto, cache=False)
    for begin, end in [(0, 4), (3, 7), (-5, -1)]:
        feed = {"x": X, "row": rows, "begin": np.array([begin]), "end": np.array([end])}
        np.testing.assert_array_equal(module.run(None, feed)[0], by_onnxruntime(proto, **feed)[0])
    with pytest.raises(ModelError, match="Expand got tensors whose sizes, which only the data say, are neither equal"):
        module.run(None, feed | {"begin": np.array([0]), "end": np.array([3])})


@pytest.mark.parametrize("until", ["bound", "total"])
def test_a_loop_that_writes_a_row_in_each_round(until):
    """One that runs a known number of times, and one that ends when its data say so."""
    step = [
        node("Add", ["at", "one"], ["next"]),
        node("ReduceSum", ["now"], ["sum"], keepdims=0),
        node("Mul", ["row", "scale"], ["next_row"]),
        *assignment("now", "at", "next", "next_row", "after"),
        node("Less", ["next", "bound"] if until == "bound" else ["sum", "total"], ["on"]),
        node("Reshape", ["on", "none"], ["go"]),
    ]
    inputs = [value("i", [], INT64), value("c", [], BOOL), value("at", [1], INT64), value("now", None)]
    results = [value("go", [], BOOL), value("next", [1], INT64), value("after", None)]
    body = helper.make_graph(step, "body", inputs, results)
    loop = node("Loop", ["", "true", "zero", "x"], ["count", "y"], body=body)
    tensors = [*TENSORS, tensor("true", np.array(True)), tensor("bound", np.array([7])), tensor("scale", np.float32(2))]
    tensors.append(tensor("total", np.float32(9)))
    proto = model([loop], [value("x", X.shape), value("row", ROW.shape)], [value("count", [1], INT64), "y"], tensors)
    feed = {"x": np.zeros_like(X), "row": abs(ROW)}
    got = tvm_rammer.compile(proto, cache=False).run(None, feed)
    for left, right in zip(got, by_onnxruntime(proto, **feed), strict=True):
        np.testing.assert_array_equal(left, right)
