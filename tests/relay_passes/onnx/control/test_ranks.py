"""Results and states of one element that have an axis or none, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.errors import UnsupportedOperatorError

from ...models import node, tensor, value
from .test_control import STEP, UNTIL, X, agree, body, branch, deciding, feeds, looped

ALONE, VECTOR = ([tensor("c", np.full(shape, 3, np.float32))] for shape in ((), (1,)))


def numbers(readers, outputs, swapped=False):
    """A number in one branch, a vector of one in the other, and what reads either."""
    both = [
        branch([node("ReduceMax", ["r"], ["t"], keepdims=0)], "t"),
        branch([node("Neg", ["c"], ["e"])], "e", tensors=VECTOR),
    ]
    proto = deciding(*(both[::-1] if swapped else both))
    proto.graph.node.extend(readers)
    proto.graph.initializer.append(tensor("whole", np.array([1, -1], np.int64)))
    del proto.graph.output[:]
    proto.graph.output.extend(value(name, None) for name in outputs)
    return proto


@pytest.mark.parametrize("swapped", [False, True])
def test_a_number_of_one_branch_and_a_vector_of_the_other(swapped):
    readers = [
        node("Exp", ["y"], ["power"]),
        node("Mul", ["power", "x"], ["z"]),
        node("Reshape", ["power", "whole"], ["matrix"]),
    ]
    agree(numbers(readers, ["z", "matrix"], swapped), {"x": X}, {"x": -X})


def test_a_branch_that_reads_it():
    inner = [
        branch([node("Add", ["y", "x"], ["a"])], "a"),
        branch([node("Sub", ["x", "y"], ["b"])], "b"),
    ]
    readers = [
        node("Greater", ["y", "zero"], ["above"]),
        node("If", ["above"], ["z"], then_branch=inner[0], else_branch=inner[1]),
    ]
    agree(numbers(readers, ["z"]), {"x": X}, {"x": -X})


@pytest.mark.parametrize(
    "reader",
    [
        node("Identity", ["y"], ["z"]),
        node("Shape", ["y"], ["z"]),
        node("Gather", ["x", "y_index"], ["z"], axis=0),
        node("Neg", ["y"], ["z"]),
    ],
    ids=lambda n: n.op_type,
)
def test_readers_that_can_tell_them_apart(reader):
    readers = [node("Cast", ["y"], ["y_index"], to=TensorProto.INT64), reader]
    with pytest.raises(UnsupportedOperatorError, match=r"return float32\[\] and float32\[1\]"):
        tvm_rammer.compile(numbers(readers, ["z"]), cache=False)


def test_a_state_gets_an_axis_in_the_first_round():
    nodes = [*STEP, *UNTIL, node("Add", ["k", "step"], ["k2"]), node("Mul", ["k2", "t"], ["t2"])]
    known = [tensor("none", np.float32(0)), tensor("step", np.ones(1, np.float32))]
    proto = looped(body(nodes, [("s", "t2"), ("k", "k2")]), ["y", "count"], constants=known, states=("x", "none"))
    proto.graph.node.append(node("Add", ["count", "x"], ["z"]))
    del proto.graph.output[1]
    proto.graph.output.append(value("z", None))
    agree(proto, *feeds(bound=[np.float32(b) for b in (0.5, 90)], n=[0, 1, 3], c=[True]))


def test_a_state_whose_axis_is_seen():
    nodes = [*STEP, *UNTIL, node("Add", ["k", "step"], ["k2"])]
    known = [tensor("none", np.float32(0)), tensor("step", np.ones(1, np.float32))]
    proto = looped(body(nodes, [("s", "t"), ("k", "k2")]), ["y", "count"], constants=known, states=("x", "none"))
    with pytest.raises(UnsupportedOperatorError, match=r"float32\[\] before a round and float32\[4, 6\], float32\[1\]"):
        tvm_rammer.compile(proto, cache=False)


def placeholders(constants):
    """The state `k` is assigned in each round, and read in none."""
    nodes = [*STEP, *UNTIL, node("Sin", ["t"], ["k2"])]
    known = [tensor("none", np.float32(0)), *constants]
    return looped(body(nodes, [("s", "t"), ("k", "k2")]), ["y", "last"], constants=known, states=("x", "none"))


@pytest.mark.parametrize("limit", [1, 9])
def test_a_state_that_no_round_reads_begins_in_any_shape(limit):
    constants = [tensor("n", np.array(limit)), tensor("c", np.array(True))]
    agree(placeholders(constants), *feeds(bound=[np.float32(b) for b in (0.5, 3.5, 90)]))


@pytest.mark.parametrize("constants", [[tensor("n", np.array(3))], [tensor("c", np.array(True))]], ids=["n", "c"])
def test_a_state_that_is_returned_where_there_is_no_round(constants):
    with pytest.raises(UnsupportedOperatorError, match="states of Loop 'it' are"):
        tvm_rammer.compile(placeholders(constants), cache=False)
