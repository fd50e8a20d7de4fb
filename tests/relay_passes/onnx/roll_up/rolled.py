"""What the tests ask of a model that is rolled up."""

from collections import Counter

import numpy as np
import onnx

from tvm_rammer.relay_passes.onnx.fold import fold_onnx
from tvm_rammer.relay_passes.onnx.roll_up.roll_up import roll_up

from ...models import by_onnxruntime, random


def given(proto):
    """Random inputs of a model of static shapes."""
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in proto.graph.input}
    return {name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())}


def assert_same(one, other):
    """Check by ONNX Runtime that two models compute the same."""
    inputs = given(one)
    for left, right in zip(by_onnxruntime(one, **inputs), by_onnxruntime(other, **inputs), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def rolled(proto):
    """The model rolled up, which computes the same; and how many steps each of its Scans has."""
    folded = onnx.ModelProto()
    folded.CopyFrom(proto)
    fold_onnx(folded)
    before = folded.SerializeToString(deterministic=True)
    made = roll_up(folded)
    assert folded.SerializeToString(deterministic=True) == before
    if made is None:
        return folded, []
    fold_onnx(made)
    assert_same(proto, made)
    return made, [steps(made, node) for node in made.graph.node if node.op_type == "Scan"]


def steps(proto, scan):
    """How many steps a Scan has."""
    shapes = onnx.shape_inference.infer_shapes(proto).graph
    dims = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*shapes.value_info, *shapes.input)}
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in scan.attribute}
    return dims[scan.input[-1]][attributes["scan_input_axes"][-1]]


def kinds(proto):
    """How many nodes of each operator a graph has."""
    graph = getattr(proto, "graph", proto)
    return Counter(node.op_type for node in graph.node)


def bodies(proto):
    """The graphs of the steps of all Scans."""
    return [a.g for node in proto.graph.node if node.op_type == "Scan" for a in node.attribute if a.name == "body"]
