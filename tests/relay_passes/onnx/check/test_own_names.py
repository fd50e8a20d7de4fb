"""An error speaks of the names that a file has."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes.onnx.check.own_names import own_names, with_own_names

from ...models import model, node, tensor, value


def test_names_that_were_made_become_those_of_the_file():
    own = frozenset(["y", "/layer/x", "/layer"])
    told = with_own_names("'y/sizes/Reshape0' of '/layer/x/lowered2/Mul3', '/layer/z' and 'q/a' don't; 'y'", own)
    assert told == "'y' of '/layer/x', '/layer' and 'q/a' don't; 'y'"


def test_names_in_subgraphs_count():
    inner = model([node("Neg", ["x"], ["inner/z"], name="/n")], [value("x", [2])], ["inner/z"]).graph
    proto = model(
        [node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)], [value("c", [], TensorProto.BOOL)], ["y"]
    )
    assert {"inner/z", "/n", "c", "y", "x"} == own_names(proto)


def test_an_axis_that_is_a_size():
    """The frontend has a tensor for the size, under another name."""
    proto = model(
        [
            node("Range", ["zero", "n", "one"], ["rows"]),
            node("Shape", ["rows"], ["axes"]),
            node("ReduceSum", ["x", "axes"], ["y"]),
        ],
        [value("n", [], TensorProto.INT64), value("x", [2, 3])],
        ["y"],
        [tensor("zero", np.array(0)), tensor("one", np.array(1))],
    )
    with pytest.raises(ModelError, match="ReduceSum 'y'") as caught:
        tvm_rammer.compile(proto, cache=False)
    assert "/" not in str(caught.value)
