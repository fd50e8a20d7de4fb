"""Constants are what ONNX Runtime makes of them, also where onnx's reference evaluator has another opinion."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from ...models import model, node, random, tensor, value
from ..test_load_onnx import agree

INT64 = TensorProto.INT64


@pytest.mark.parametrize("axes", [[0], [-1], [-2, -1], [1, 0], [2, 0], [0, -1], [2, -3], [-1, -3]])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_unsqueeze_of_a_constant_by_attributes(shape, axes, run):
    """One axis after the other is another shape: [-2, -1] of [3] is [3, 1, 1]."""
    nodes = [node("Unsqueeze", ["c"], ["u"], axes=axes), node("Add", ["x", "u"], ["y"])]
    proto = model(nodes, [value("x", [1])], ["y"], [tensor("c", random(*shape))], opset=11, ir=6)
    agree(run, proto, x=random(1, seed=1))


def test_unsqueeze_of_what_a_loop_counts(run):
    """A scale for each row, by the number of the round."""
    nodes = [
        node("Identity", ["go"], ["go_on"]),
        node("Gather", ["scales", "i"], ["scale"], axis=0),
        node("Unsqueeze", ["scale"], ["column"], axes=[-2, -1]),
        node("Mul", ["s", "column"], ["next"]),
    ]
    given = [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("s", [3, 2, 3])]
    results = [value("go_on", [], TensorProto.BOOL), value("next", [3, 2, 3])]
    body = helper.make_graph(nodes, "body", given, results, [tensor("scales", random(4, 3))])
    loop = node("Loop", ["rounds", "true", "x"], ["y"], body=body)
    constants = [tensor("rounds", np.array(4)), tensor("true", np.array(True))]
    agree(run, model([loop], [value("x", [3, 2, 3])], ["y"], constants, opset=11, ir=6), x=random(3, 2, 3))
