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
