"""Choices whose number only the data know, made several times."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.relay_passes.onnx.lower.join_chosen import join_chosen

from ...models import by_onnxruntime, model, node, random, tensor, value


def masked(*limits):
    """The sum of `x[s > limit]` and of `y[s > other]`, each of them with a mask and a NonZero of its own."""
    nodes = []
    for name, limit in zip("xy", ("one", "other"), strict=True):
        nodes += [
            node("Greater", ["s", limit], [f"{name}_mask"]),
            node("NonZero", [f"{name}_mask"], [f"{name}_where"]),
            node("Transpose", [f"{name}_where"], [f"{name}_places"]),
            node("GatherND", [name, f"{name}_places"], [f"{name}_chosen"]),
        ]
    nodes.append(node("Add", ["x_chosen", "y_chosen"], ["z"]))
    inputs = [value("x", [10, 4]), value("y", [10, 1]), value("s", [10])]
    outputs = ["z", value("y_where", None, TensorProto.INT64)]
    constants = [tensor(name, np.float32(limit)) for name, limit in zip(("one", "other"), limits, strict=True)]
    return model(nodes, inputs, outputs, constants)


def operators(proto):
    return [n.op_type for n in proto.graph.node]


@pytest.mark.parametrize("shift", [-9, 0, 9])
def test_what_one_mask_chooses_of_several_tensors_is_added_up(shift):
    proto, arrays = masked(0.5, 0.5), {"x": random(10, 4), "y": random(10, 1, seed=1), "s": random(10, seed=2) + shift}
    arrays["s"] = arrays["s"].astype("float32")
    got = tvm_rammer.compile(proto, cache=False).run(None, arrays)
    for left, right in zip(got, by_onnxruntime(proto, **arrays), strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_second_of_two_equal_choices_is_another_name_of_the_first():
    proto = masked(0.5, 0.5)
    join_chosen(proto)
    assert operators(proto).count("NonZero") == 1
    assert [list(n.input) for n in proto.graph.node if n.op_type == "Identity"] == [["x_where"]]


def test_choices_by_other_limits_stay():
    proto = masked(0.5, 0.25)
    before = operators(proto)
    join_chosen(proto)
    assert operators(proto) == before


def test_choices_with_other_attributes_stay():
    nodes = [node("Compress", ["x", "c"], [name], axis=axis) for name, axis in (("a", 0), ("b", 1))]
    proto = model(nodes, [value("x", [3, 3]), value("c", [3], TensorProto.BOOL)], ["a", "b"])
    join_chosen(proto)
    assert operators(proto) == ["Compress"] * 2


def test_results_that_the_first_leaves_out_are_made_by_the_second():
    nodes = [
        node("Unique", ["x"], ["a", "", ""]),
        node("Unique", ["x"], ["b", "", "where"]),
        node("Unique", ["x"], ["c", "", "there"]),
        node("Unique", ["x"], ["d"]),
    ]
    kinds = {"where": TensorProto.INT64, "there": TensorProto.INT64}
    outputs = [value(name, None, kinds.get(name, TensorProto.FLOAT)) for name in ("a", "b", "where", "c", "there", "d")]
    proto, x = model(nodes, [value("x", [6])], outputs), np.array([3, 1, 3, 2, 1, 1], "float32")
    want = by_onnxruntime(proto, x=x)
    got = tvm_rammer.compile(proto, cache=False).run(None, {"x": x})
    for left, right in zip(got, want, strict=True):
        np.testing.assert_array_equal(left, right)
    join_chosen(proto)
    assert operators(proto).count("Unique") == 3
