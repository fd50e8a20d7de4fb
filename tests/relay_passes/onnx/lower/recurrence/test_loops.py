"""Loops of a known number of rounds, unrolled, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.lower.recurrence import loops

from ....models import model, node, random, tensor, value
from ...test_load_onnx import agree

GO_ON = node("Identity", ["go"], ["go_on"])


def body(nodes, inputs, outputs, initializers=()):
    """The body of a Loop; it begins with the number of the round and a condition, and ends with the next one."""
    given = [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), *inputs]
    results = [value("go_on", [], TensorProto.BOOL), *outputs]
    return helper.make_graph(nodes, "body", given, results, list(initializers))


def looped(graph, outputs, rounds=3, state="x", inputs=(), condition="true"):
    """A model of one Loop with one state."""
    loop = node("Loop", ["rounds", condition, state], outputs, name="it", body=graph)
    constants = [tensor("true", np.array(True))]
    if rounds is not None:
        constants.append(tensor("rounds", np.array(rounds)))
    return model([loop], [value("x", [2, 3]), *inputs], outputs, constants)


def growing():
    """Adds weights of its own, and something from outside times the round's number."""
    nodes = [
        GO_ON,
        node("Cast", ["i"], ["n"], to=TensorProto.FLOAT),
        node("Mul", ["outer", "n"], ["more"]),
        node("Add", ["s", "more"], ["sum"]),
        node("Add", ["sum", "own"], ["next"]),
        node("Tanh", ["next"], ["seen"]),
    ]
    return body(nodes, [value("s", [2, 3])], [value("next", [2, 3]), value("seen", [2, 3])], [tensor("own", random(3))])


def test_states_and_what_each_round_wrote(run):
    proto = looped(growing(), ["last", "all"], inputs=[value("outer", [2, 1])])
    agree(run, proto, x=random(2, 3), outer=random(2, 1, seed=1))


@pytest.mark.parametrize("condition", ["", "true"])
def test_a_condition_that_is_always_true(condition, run):
    always = node("Constant", [], ["go_on"], value=tensor("t", np.array(True)))
    graph = body([always, node("Tanh", ["s"], ["next"])], [value("s", [2, 3])], [value("next", [2, 3])])
    agree(run, looped(graph, ["last"], condition=condition), x=random(2, 3))


def test_a_branch_that_the_round_decides(run):
    def branch(kind):
        return helper.make_graph([node(kind, ["s"], ["b"])], kind, [], [value("b", [2, 3])])

    nodes = [
        GO_ON,
        node("Less", ["i", "one"], ["first"]),
        node("If", ["first"], ["next"], then_branch=branch("Sin"), else_branch=branch("Tanh")),
    ]
    graph = body(nodes, [value("s", [2, 3])], [value("next", [2, 3])], [tensor("one", np.array(1))])
    agree(run, looped(graph, ["last"]), x=random(2, 3))


def test_a_loop_in_a_loop(run):
    inner = helper.make_graph(
        [node("Identity", ["go2"], ["go_on2"]), node("Sin", ["s2"], ["n2"])],
        "inner",
        [value("i2", [], TensorProto.INT64), value("go2", [], TensorProto.BOOL), value("s2", [2, 3])],
        [value("go_on2", [], TensorProto.BOOL), value("n2", [2, 3])],
    )
    nodes = [GO_ON, node("Loop", ["rounds", "", "s"], ["t"], body=inner), node("Add", ["t", "x"], ["next"])]
    graph = body(nodes, [value("s", [2, 3])], [value("next", [2, 3])])
    agree(run, looped(graph, ["last"], rounds=2), x=random(2, 3))


def test_rows_of_a_number_of_rounds_that_is_not_known(run):
    inputs = [value("outer", [2, 1]), value("rounds", [], TensorProto.INT64)]
    proto = looped(growing(), ["last", "all"], None, inputs=inputs)
    for rounds in (0, 1, 5):
        agree(run, proto, x=random(2, 3), outer=random(2, 1), rounds=np.array(rounds))


def test_a_loop_that_never_runs_has_no_rows(run):
    proto = looped(growing(), ["last", "all"], 0, inputs=[value("outer", [2, 1])])
    agree(run, proto, x=random(2, 3), outer=random(2, 1))


def test_loops_of_too_many_nodes_are_refused(monkeypatch):
    monkeypatch.setattr(loops, "MOST_NODES", 10)
    with pytest.raises(ModelError, match="Loop 'it' runs 3 times, which makes more than 10 nodes"):
        load_model(looped(growing(), ["last", "all"], inputs=[value("outer", [2, 1])]))


def scanned(opset=17, **attributes):
    """Two states, two inputs of which slices are read, two results of which slices are written."""
    nodes = [
        node("Add", ["a", "u"], ["a2"]),
        node("Mul", ["b", "v"], ["b2"]),
        node("Sub", ["a2", "b2"], ["p"]),
        node("Tanh", ["p"], ["q"]),
    ]
    names = ["a", "b", "u", "v"]
    results = ["a2", "b2", "p", "q"]
    graph = helper.make_graph(nodes, "body", [value(n, [2]) for n in names], [value(n, [2]) for n in results])
    outputs = ["a_end", "b_end", "ps", "qs"]
    scan = node("Scan", ["a0", "b0", "us", "vs"], outputs, num_scan_inputs=2, body=graph, **attributes)
    axes = attributes.get("scan_input_axes", [0, 0])
    shapes = [[2], [2], *([2, 4] if axis % 2 else [4, 2] for axis in axes)]
    given = [value(n, s) for n, s in zip(["a0", "b0", "us", "vs"], shapes, strict=True)]
    return model([scan], given, outputs, opset=opset), {
        n: random(*s, seed=i) for i, (n, s) in enumerate(zip(["a0", "b0", "us", "vs"], shapes, strict=True))
    }


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"opset": 11},
        {"scan_input_directions": [0, 1], "scan_output_directions": [1, 0]},
        {"scan_input_axes": [1, 0], "scan_output_axes": [0, 1]},
        {"scan_input_axes": [-1, -2], "scan_output_axes": [-1, 0]},
    ],
)
def test_scans(attributes, run):
    proto, inputs = scanned(**attributes)
    agree(run, proto, **inputs)
