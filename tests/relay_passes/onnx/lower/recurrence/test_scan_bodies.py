"""Operators in the body of a Scan that take shapes, axes and pads from constants around it: it stays a loop."""

import numpy as np
import pytest
from onnx import helper

import tvm_rammer

from ....models import by_onnxruntime, model, node, random, tensor, value

CONSTANTS = {"two": [1, 2], "square": [2, 2], "wide": [3, 4], "one": [1], "three": [3], "axis": [0]}
BODIES = {
    "Pad at the edges": [node("Pad", ["s2", "two"], ["yi"], mode="edge")],
    "Pad around": [node("Pad", ["s2", "two"], ["yi"], mode="wrap")],
    "Pad with what is computed": [
        node("ReduceMax", ["xi"], ["most"], keepdims=0),
        node("Pad", ["s2", "two", "most"], ["yi"]),
    ],
    "Reshape": [node("Reshape", ["s2", "square"], ["yi"])],
    "Slice": [node("Slice", ["s2", "one", "three"], ["yi"])],
    "Expand": [node("Expand", ["s2", "wide"], ["yi"])],
    "Tile": [node("Reshape", ["s2", "square"], ["z"]), node("Tile", ["z", "square"], ["yi"])],
    "Unsqueeze": [node("Unsqueeze", ["s2", "axis"], ["yi"])],
}


@pytest.mark.parametrize("name", BODIES)
def test_it_stays_a_loop(name):
    nodes = [node("Add", ["s", "xi"], ["s2"]), *BODIES[name]]
    step = helper.make_graph(nodes, "step", [value("s", [4]), value("xi", [4])], [value("s2", [4]), value("yi", None)])
    scan = node("Scan", ["x0", "xs"], ["last", "ys"], body=step, num_scan_inputs=1)
    constants = [tensor(key, np.array(numbers)) for key, numbers in CONSTANTS.items()]
    proto = model([scan], [value("x0", [4]), value("xs", [12, 4])], ["last", "ys"], constants, opset=19)
    module = tvm_rammer.compile(proto)
    assert [program.steps for program in module.rprograms if program.steps > 1] == [12]
    feeds = {"x0": random(4), "xs": random(12, 4, seed=3)}
    for mine, theirs in zip(module.run(None, feeds), by_onnxruntime(proto, **feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backward", [0, 1])
def test_what_a_step_is_given_may_be_handed_on(backward):
    """A delay by one step and one by two, a state that is collected as it was, and a value of the graph around."""
    nodes = [
        *(node("Identity", [one], [other]) for one, other in (("xi", "d1"), ("last1", "d2"), ("last1", "y1"))),
        *(node("Identity", [one], [other]) for one, other in (("last2", "y2"), ("out", "o2"))),
        node("Sum", ["xi", "last1", "last2"], ["y3"]),
    ]
    states = [("last1", "d1"), ("last2", "d2"), ("held", "o2")]
    given = [value(name, [4]) for name in (*(before for before, _ in states), "xi")]
    results = [value(name, [4]) for name in (*(after for _, after in states), "y1", "y2", "y3")]
    step = helper.make_graph(nodes, "step", given, results)
    outputs = ["l1", "l2", "l3", "a", "b", "c"]
    scan = node(
        "Scan", ["x0", "x1", "x0", "xs"], outputs, body=step, num_scan_inputs=1,
        scan_input_directions=[backward], scan_output_directions=[0, backward, 0],
    )  # fmt: skip
    inputs = [value(name, [4]) for name in ("x0", "x1", "out")]
    proto = model([scan], [*inputs, value("xs", [12, 4])], outputs)
    module = tvm_rammer.compile(proto)
    assert [program.steps for program in module.rprograms if program.steps > 1] == [12]
    feeds = {name: random(4, seed=n) for n, name in enumerate(("x0", "x1", "out"))} | {"xs": random(12, 4, seed=3)}
    for mine, theirs in zip(module.run(None, feeds), by_onnxruntime(proto, **feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_states_that_change_places():
    """Fibonacci's numbers, by a Loop of a known length."""
    body = helper.make_graph(
        [node("Add", ["a", "b"], ["c"]), node("Identity", ["b"], ["b2"]), node("Identity", ["go"], ["on"])],
        "body", [value("n", [], 7), value("go", [], 9), value("a", []), value("b", [])],
        [value("on", [], 9), value("b2", []), value("c", [])],
    )  # fmt: skip
    loop = node("Loop", ["rounds", "", "x", "x"], ["p", "q"], body=body)
    proto = model([loop], [value("x", [])], ["p", "q"], [tensor("rounds", np.array(20))])
    module = tvm_rammer.compile(proto)
    assert [program.steps for program in module.rprograms if program.steps > 1] == [20]
    p, q = module(np.array(1, np.float32))
    assert (float(p), float(q)) == (10946.0, 17711.0)
