"""How often all types of a model are inferred before nothing is left to be folded."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.relay_passes.onnx import fold

from ..models import model, node, random, tensor, value
from .test_load_onnx import agree


def reshaping(layers):
    """Each layer takes its shape from what the layer before returned, as exporters of TensorFlow write attention."""
    nodes = []
    for n in range(layers):
        nodes += [
            node("Shape", [f"x{n}"], [f"shape{n}"]),
            node("Gather", [f"shape{n}", "zero"], [f"batch{n}"]),
            node("Concat", [f"batch{n}", "rest"], [f"rows{n}"], axis=0),
            node("Reshape", [f"x{n}", f"rows{n}"], [f"y{n}"]),
            node("Softmax", [f"y{n}"], [f"z{n}"]),
            node("Reshape", [f"z{n}", f"shape{n}"], [f"x{n + 1}"]),
        ]
    constants = [tensor("zero", np.array([0])), tensor("rest", np.array([-1, 4]))]
    return model(nodes, [value("x0", [2, 3, 8])], [f"x{layers}"], constants)


@pytest.mark.parametrize("layers", [2, 12])
def test_shapes_that_depend_on_each_other_are_folded_in_one_round(layers, run, monkeypatch):
    inferred, infer = [], fold.infer_types
    monkeypatch.setattr(fold, "infer_types", lambda proto: inferred.append(1) or infer(proto))
    proto = reshaping(layers)
    fold.fold_onnx(proto)
    assert {each.op_type for each in proto.graph.node} == {"Reshape", "Softmax"}
    assert len(inferred) == 2
    agree(run, reshaping(layers), x0=random(2, 3, 8))


def test_two_branches_with_one_name_for_values_of_two_types(run):
    """What is learnt of one of them says nothing of the other one."""

    def branch(repeated):
        shape = tensor("rows", np.array([2, 3] if repeated else [3, 2]))
        nodes = [node("Reshape", ["x", "rows"], ["t"]), node("Shape", ["t"], ["b"])]
        return helper.make_graph(nodes, "branch", [], [value("b", [2], TensorProto.INT64)], [shape])

    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["chosen"]),
        node("If", ["chosen"], ["y"], then_branch=branch(True), else_branch=branch(False)),
    ]
    proto = model(nodes, [value("x", [6])], [value("y", [2], TensorProto.INT64)], [tensor("zero", np.float32(0))])
    for x in (np.ones(6, "float32"), -np.ones(6, "float32")):
        agree(run, proto, x=x)
