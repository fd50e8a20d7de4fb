"""What reads the sizes of what has as many elements as the data say, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tvm_rammer.relay_passes.onnx.data_sizes.as_tensors import make_tensors_of_sizes

from ...models import by_onnxruntime, model, node, tensor, value

INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
CONSTANTS = {
    "zero": 0, "one": 1, "five": 5, "axis": [0], "five_": [5], "less": [-1], "ones": [1], "far": [99],
    "few": [3, 1, 2], "none": np.array([], np.int64),
}  # fmt: skip
TENSORS = [tensor(name, np.array(array, np.int64)) for name, array in CONSTANTS.items()]
TENSORS.append(tensor("half", np.array(0.5, np.float32)))
SIZES = [
    node("Range", ["zero", "n", "one"], ["rows"]),
    node("Shape", ["rows"], ["shape"]),
    node("Gather", ["shape", "zero"], ["number"]),
]
"""`n` rows, their shape, and how many they are."""

BRANCHES = {
    f"{name}_branch": helper.make_graph([node(op, ["n"], [name])], name, [], [value(name, [], INT64)])
    for name, op in (("then", "Identity"), ("else", "Neg"))
}
READERS = {
    "Equal of a shape": ([node("Equal", ["shape", "five_"], ["y"])], [1], BOOL),
    "Equal of two shapes": ([node("Shape", ["few"], ["s"]), node("Equal", ["shape", "shape"], ["y"])], [1], BOOL),
    "Equal of a number": ([node("Equal", ["number", "five"], ["y"])], [], BOOL),
    "Greater": ([node("Greater", ["number", "five"], ["y"])], [], BOOL),
    "If": ([node("Greater", ["number", "five"], ["b"]), node("If", ["b"], ["y"], **BRANCHES)], [], INT64),
    "with a tensor": ([node("Mul", ["n", "number"], ["y"])], [], INT64),
    "with an axis": ([node("Add", ["number", "five_"], ["y"])], [1], INT64),
    "squeezed": ([node("Squeeze", ["shape"], ["s"]), node("Add", ["s", "n"], ["y"])], [], INT64),
    "as another type": (
        [
            node("Cast", ["number"], ["f"], to=FLOAT),
            node("Mul", ["f", "half"], ["h"]),
            node("Floor", ["h"], ["l"]),
            node("Cast", ["l"], ["i"], to=INT64),
            node("Range", ["zero", "i", "one"], ["y"]),
        ],
        ["a"],
        INT64,
    ),
    "with others in a shape": (
        [
            node("Unsqueeze", ["number", "axis"], ["u"]),
            node("Unsqueeze", ["n", "axis"], ["v"]),
            node("Concat", ["u", "ones", "v"], ["s"], axis=0),
            node("Expand", ["one", "s"], ["y"]),
        ],
        ["a", 1, "b"],
        INT64,
    ),
    "a shape as a result": ([node("Concat", ["shape", "few"], ["y"], axis=0)], [4], INT64),
    "a number as a result": ([node("Mul", ["number", "number"], ["y"])], [], INT64),
    "a result that is read": (
        [node("Concat", ["shape", "ones"], ["z"], axis=0), node("Expand", ["one", "z"], ["y"])],
        ["a", 1],
        INT64,
    ),
    "arithmetic of shapes": (
        [node("Mul", ["shape", "five_"], ["s"]), node("Expand", ["one", "s"], ["y"])],
        ["a"],
        INT64,
    ),
    "Tile": ([node("Tile", ["few", "shape"], ["y"])], ["a"], INT64),
    "ReduceProd": ([node("ReduceProd", ["shape"], ["y"], keepdims=0)], [], INT64),
    "a Slice that ends beyond the end": ([node("Slice", ["few", "axis", "shape", "axis"], ["y"])], ["a"], INT64),
    "a Slice that begins there": ([node("Slice", ["few", "shape", "far", "axis"], ["y"])], ["a"], INT64),
    "a Slice of computed bounds": (
        [node("Sub", ["shape", "ones"], ["e"]), node("Slice", ["rows", "axis", "e", "axis"], ["y"])],
        ["a"],
        INT64,
    ),
    "no size is less than nothing": (
        [
            node("Equal", ["shape", "less"], ["b"]),
            node("Where", ["b", "ones", "shape"], ["s"]),
            node("Expand", ["one", "s"], ["y"]),
        ],
        ["a"],
        INT64,
    ),
}
"""Nodes that make "y" of the sizes, its shape and its type."""


def of(name):
    nodes, shape, kind = READERS[name]
    outputs = [value(result, shape, kind) for result in ("z", "y") if any(result in n.output for n in nodes)]
    return model([*SIZES, *nodes], [value("n", [], INT64)], outputs, TENSORS, opset=20, ir=10)


@pytest.mark.parametrize("name", READERS)
def test_readers(name):
    module = tvm_rammer.compile(of(name), cache=False)
    for number in (5, 0, 2, 9):
        got = module.run(None, {"n": np.array(number)})
        for left, right in zip(got, by_onnxruntime(of(name), n=np.array(number)), strict=True):
            assert (left.shape, left.dtype) == (right.shape, right.dtype)
            np.testing.assert_array_equal(left, right)


def test_what_takes_a_shape_gets_it():
    proto = of("no size is less than nothing")
    before = proto.SerializeToString(deterministic=True)
    make_tensors_of_sizes(proto)
    assert proto.SerializeToString(deterministic=True) == before


def test_sizes_beside_each_other():
    """TVM fails to fuse what has one size with what takes another one as a number."""
    nodes = [*SIZES, node("Div", ["n", "five"], ["m"]), node("Range", ["zero", "m", "one"], ["indices"])]
    nodes.append(node("Gather", ["rows", "indices"], ["y"]))
    proto = model(nodes, [value("n", [], INT64)], [value("y", ["a"], INT64)], TENSORS, opset=20, ir=10)
    module = tvm_rammer.compile(proto, cache=False)
    for number in (0, 4, 17):
        np.testing.assert_array_equal(module(np.array(number)), np.arange(number // 5))
