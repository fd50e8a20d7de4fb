"""Bodies of loops that take the number of a round, and the condition, for vectors, as tf2onnx writes them."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from ....models import model, node, random, tensor, value
from ...test_load_onnx import agree

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
NEXT = [
    node("Add", ["i", "one"], ["end"]),
    node("Slice", ["table", "i", "end", "zero"], ["row"]),
    node("Add", ["s", "row"], ["next"]),
]


def looped(nodes, going, seen, rounds=4, shape=(1, 3)):
    """A Loop over rows of a table; `going` has the shape of its condition, `seen` is the type collected."""
    given = [value("i", [1], INT64), value("go", going, BOOL), value("s", shape)]
    results = [value("go_on", going, BOOL), value("next", shape), value("seen", [1], seen)]
    constants = [tensor("one", np.array([1])), tensor("zero", np.array([0])), tensor("bound", np.array(2))]
    body = helper.make_graph([*NEXT, *nodes], "body", given, results, constants)
    loop = node("Loop", ["rounds", "true", "x"], ["last", "all"], body=body)
    fixed = [tensor("rounds", np.array(rounds)), tensor("true", np.full(going, True)), tensor("table", random(12, 3))]
    return model([loop], [value("x", shape)], ["last", value("all", None, seen)], fixed, opset=11, ir=6)


@pytest.mark.parametrize("rounds", [4, 12])
@pytest.mark.parametrize("going", [[], [1]])
def test_the_number_of_a_round_as_a_vector(going, rounds, run):
    nodes = [node("Identity", ["go"], ["go_on"]), node("Identity", ["i"], ["seen"])]
    agree(run, looped(nodes, going, INT64, rounds), x=random(1, 3))


def test_a_condition_as_a_vector(run):
    nodes = [
        node("Less", ["i", "bound"], ["goes"]),
        node("And", ["goes", "go"], ["go_on"]),
        node("Not", ["go"], ["seen"]),
    ]
    agree(run, looped(nodes, [1], BOOL), x=random(1, 3))


def test_a_condition_as_a_vector_that_is_collected(run):
    nodes = [node("Identity", ["go"], ["go_on"]), node("Identity", ["go"], ["seen"])]
    agree(run, looped(nodes, [1], BOOL), x=random(1, 3))
