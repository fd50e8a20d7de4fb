"""Arithmetic on shapes that only the data say: what detectors do with the boxes that they found."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, op_names, random, tensor, value

INT64 = TensorProto.INT64
CONSTANTS = {
    "limit": np.float32(0.2), "k": np.array([30]), "seven": np.array(7), "zero": np.array(0), "one": np.array(1),
    "first": np.array([0]), "second": np.array([1]), "mask": np.array([True, False]), "two": np.array(2),
    "place": np.array([[1]]), "twice": np.array([2]), "pads": np.array([1, 0]), "column": np.array([2, 1]),
    "wide": np.array([3, 2]), "ends": np.array([0, 1]),
}  # fmt: skip


def found(nodes, results, extent, opset=17):
    """The numbers above a limit, [1, n]; `n` is that shape, or the extent alone."""
    before = [
        node("Greater", ["x", "limit"], ["above"]),
        node("Compress", ["x", "above"], ["row"], axis=0),
        node("Unsqueeze", ["row", "first"], ["s"]) if opset > 12 else node("Unsqueeze", ["row"], ["s"], axes=[0]),
        node("Shape", ["s"], ["shape" if extent else "n"]),
        *([node("Gather", ["shape", "one"], ["n"], axis=0)] if extent else []),
    ]
    constants = [tensor(name, array) for name, array in CONSTANTS.items()]
    return model([*before, *nodes], [value("x", [40])], results, constants, opset=opset)


def agree(run, proto, x):
    got = run(load_model(proto), x)
    for ours, theirs in zip(got if isinstance(got, list) else [got], by_onnxruntime(proto, x=x), strict=True):
        theirs = np.asarray(theirs)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_array_equal(ours, theirs)


def to_int(kind, *inputs):
    return [node(kind, list(inputs), ["t"]), node("Cast", ["t"], ["y"], to=INT64)]


OF_BOTH = {
    **{kind: [node(kind, ["n", "k"], ["y"])] for kind in ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max")},
    **{kind: [node(kind, ["n"], ["y"])] for kind in ("Neg", "Abs", "Sign", "Identity")},
    **{kind: to_int(kind, "n", "k") for kind in ("Equal", "Less", "Greater")},
    **{kind: [node(kind, ["n"], ["y"], keepdims=0)] for kind in ("ReduceProd", "ReduceMax", "ReduceMin")},
    "Where": [node("Where", ["mask", "n", "k"], ["y"])], "Expand": [node("Expand", ["n", "wide"], ["y"])],
    "Clip": [node("Clip", ["n", "zero", "seven"], ["y"])],
    "root": [node("Cast", ["n"], ["f"], to=TensorProto.FLOAT), *to_int("Sqrt", "f")],
    "flag": [node("Cast", ["n"], ["f"], to=TensorProto.BOOL), *to_int("Not", "f")],
}  # fmt: skip
OF_SHAPES = {
    "an extent": [node("Gather", ["n", "one"], ["y"], axis=0)],
    "extents": [node("Gather", ["n", "ends"], ["y"], axis=0)],
    "a part": [node("Slice", ["n", "first", "second"], ["y"])], "joined": [node("Concat", ["n", "k"], ["y"], axis=0)],
    "one more axis": [node("Unsqueeze", ["n", "first"], ["y"])], "a column": [node("Reshape", ["n", "column"], ["y"])],
    "itself": [node("Identity", ["n"], ["t"]), node("Add", ["t", "n"], ["y"])],
    "scattered": [node("ScatterND", ["n", "place", "k"], ["y"])], "sums": [node("CumSum", ["n", "zero"], ["y"])],
    "repeated": [node("Tile", ["n", "twice"], ["y"])], "padded": [node("Pad", ["n", "pads"], ["y"])],
    "the largest": [node("ArgMax", ["n"], ["y"])], "split": [node("Split", ["n"], ["y", "z"], axis=0)],
    "of a shape": [node("ConstantOfShape", ["n"], ["t"]), node("Shape", ["t"], ["y"])],
}  # fmt: skip
OF_EXTENTS = {
    "joined": [
        node("Unsqueeze", ["n", "first"], ["u"]), node("Sub", ["u", "second"], ["v"]),
        node("Concat", ["v", "u", "k"], ["y"], axis=0),
    ],
    "the least": [
        node("Unsqueeze", ["n", "first"], ["u"]), node("Concat", ["u", "k"], ["c"], axis=0),
        node("ReduceMin", ["c"], ["y"], keepdims=0),
    ],
    "of a slice and a reshape": [
        node("Div", ["n", "two"], ["h"]), node("Mul", ["h", "two"], ["even"]),
        node("Unsqueeze", ["even", "first"], ["e"]), node("Slice", ["s", "first", "e", "second"], ["part"]),
        node("Unsqueeze", ["h", "first"], ["u"]), node("Concat", ["u", "twice"], ["c"], axis=0),
        node("Reshape", ["part", "c"], ["r"]), node("Shape", ["r"], ["d"]), node("Add", ["d", "h"], ["y"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("extent", [False, True])
@pytest.mark.parametrize("name", OF_BOTH)
def test_of_a_shape_and_of_one_extent(name, extent, run):
    agree(run, found(OF_BOTH[name], [value("y", None, INT64)], extent), random(40))


@pytest.mark.parametrize("name", OF_SHAPES)
def test_of_a_shape(name, run):
    agree(run, found(OF_SHAPES[name], [value("y", None, INT64)], extent=False), random(40))


@pytest.mark.parametrize("name", OF_EXTENTS)
def test_of_one_extent(name, run):
    agree(run, found(OF_EXTENTS[name], [value("y", None, INT64)], extent=True), random(40))


@pytest.mark.parametrize("extent", [False, True])
def test_as_a_result_and_before_opset_13(extent, run):
    nodes = [node("Sub", ["n", "k"], ["y"])]
    results = [value("n", None, INT64), value("y", None, INT64)]
    agree(run, found(nodes, results, extent, opset=11), random(40))


def test_a_shape_that_is_read_as_one_keeps_its_names():
    """No tensor is made of it."""
    nodes = [node("ConstantOfShape", ["n"], ["c"]), node("Add", ["c", "s"], ["y"])]
    assert "shape_to_tensor" not in op_names(load_model(found(nodes, ["y"], extent=False)))


@pytest.mark.parametrize("most", [4, 30])
def test_as_many_as_there_are_but_not_too_many(most):
    """As RetinaNet takes the best boxes of a level."""
    nodes = [
        node("Unsqueeze", ["n", "first"], ["u"]),
        node("Concat", ["u", "k"], ["c"], axis=0),
        node("ReduceMin", ["c"], ["count"], keepdims=1),
        node("TopK", ["row", "count"], ["y", "i"]),
        node("Gather", ["row", "i"], ["again"]),
    ]
    proto = found(nodes, ["y", value("i", None, INT64), "again"], extent=True)
    next(t for t in proto.graph.initializer if t.name == "k").CopyFrom(tensor("k", np.array([most])))
    x = random(40)
    for ours, theirs in zip(tvm_rammer.compile(proto)(x), by_onnxruntime(proto, x=x), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((6,), 0), ((3, 5), -1), ((2, 3, 4), 1)])
def test_how_many_the_largest_are_is_an_input(shape, axis, largest):
    nodes = [node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=largest)]
    given = [value("x", shape), value("k", [1], INT64)]
    proto = model(nodes, given, ["y", value("i", None, INT64)])
    module, x = tvm_rammer.compile(proto), random(*shape)
    for k in (0, 1, 3):
        feeds = {"x": x, "k": np.array([k])}
        for ours, theirs in zip(module(*feeds.values()), by_onnxruntime(proto, **feeds), strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs)
