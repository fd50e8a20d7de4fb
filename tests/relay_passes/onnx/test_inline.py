"""Names of subgraphs that are names of the graph around them, too."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from ..models import model, node, random, tensor, value
from .test_load_onnx import agree

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


def loop_body(nodes, at=""):
    """The body of a Loop with one state; all bodies use the same names for what they are given."""
    given = [value("i", [], INT64), value("go", [], BOOL), value("x", [2])]
    results = [value(f"go_on{at}", [], BOOL), value(f"next{at}", [2])]
    return helper.make_graph([node("Identity", ["go"], [f"go_on{at}"]), *nodes], "body", given, results)


@pytest.mark.parametrize("known", [True, False])
def test_a_loop_within_a_loop_with_the_same_names(known, run):
    """The inner one's number of a round, and its state, are its own."""
    nodes = [node("Cast", ["i"], ["n_within"], to=TensorProto.FLOAT), node("Add", ["x", "n_within"], ["next_within"])]
    within = loop_body(nodes, "_within")
    around = loop_body(
        [
            node("Loop", ["inner_rounds", "go", "x"], ["middle"], body=within),
            node("Cast", ["i"], ["n"], to=TensorProto.FLOAT),
            node("Mul", ["middle", "two"], ["twice"]),
            node("Add", ["twice", "n"], ["next"]),
        ]
    )
    numbers = {"inner_rounds": np.array(2), "rounds": np.array(3)}
    constants = [tensor("true", np.array(True)), tensor("two", np.float32(2))]
    constants += [tensor(name, array) for name, array in numbers.items()] if known else []
    given = [value("x", [2]), *([] if known else [value(name, [], INT64) for name in numbers])]
    proto = model([node("Loop", ["rounds", "true", "x"], ["y"], body=around)], given, ["y"], constants)
    agree(run, proto, x=random(2), **({} if known else numbers))


def test_a_constant_of_a_branch_that_hides_another_one(run):
    def branch(number):
        nodes = [node("Mul", ["x", "c"], ["t"]), node("Add", ["t", "d"], ["b"])]
        return helper.make_graph(nodes, "branch", [], [value("b", [2])], [tensor("c", np.float32(number))])

    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "c"], ["chosen"]),
        node("If", ["chosen"], ["t"], then_branch=branch(2), else_branch=branch(3)),
        node("Add", ["t", "c"], ["y"]),
    ]
    proto = model(nodes, [value("x", [2])], ["y"], [tensor("c", np.float32(1)), tensor("d", np.float32(5))])
    for x in (np.ones(2, "float32"), np.zeros(2, "float32")):
        agree(run, proto, x=x)


def test_an_output_that_is_the_input_of_a_loop(run):
    loop = node("Loop", ["n", "true", "x"], ["y"], body=loop_body([node("Add", ["x", "x"], ["next"])]))
    given = [value("x", [2]), value("n", [], INT64)]
    agree(
        run,
        model([loop], given, ["x", "y"], [tensor("true", np.array(True))]),
        x=random(2),
        n=np.array(3),
    )
