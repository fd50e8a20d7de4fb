"""Models of one operator of ai.onnx.ml, and how they are compared with ONNX Runtime."""

import numpy as np
from onnx import TensorProto, helper

from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, value

STUMP = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.25, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}


def learned(kind, inputs, outputs, constants=(), version=2, **attributes):
    """A model of one operator of ai.onnx.ml."""
    nodes = [node(kind, [i.name for i in inputs] + [c.name for c in constants], [o.name for o in outputs])]
    nodes[0].domain = "ai.onnx.ml"
    nodes[0].attribute.extend(helper.make_attribute(name, given) for name, given in attributes.items())
    proto = model(nodes, inputs, outputs, constants)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", version))
    return proto


def same(run, kind, x, outputs=None, constants=(), **attributes):
    """Compare one operator with ONNX Runtime, types and shapes, too."""
    elem = helper.np_dtype_to_tensor_dtype(x.dtype)
    proto = learned(kind, [value("x", x.shape, elem)], outputs or [value("y", None)], constants, **attributes)
    expected = by_onnxruntime(proto, x=x)
    got = run(load_model(proto), x)
    for left, right in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def both():
    return [value("label", None, TensorProto.INT64), value("scores", None)]


def leaves(side, weights):
    """The attributes of a stump's two leaves, whose weights are given by class or target."""
    entries = [(leaf, k, w) for leaf, row in zip((1, 2), weights, strict=True) for k, w in row.items()]
    return {
        f"{side}_treeids": [0] * len(entries),
        f"{side}_nodeids": [leaf for leaf, _, _ in entries],
        f"{side}_ids": [k for _, k, _ in entries],
        f"{side}_weights": [w for _, _, w in entries],
    }
