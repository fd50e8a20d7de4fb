"""Choices whose number only the data know: equal ones are made once, so that the number has one name.

PyTorch's exporter writes `x[mask]` and `y[mask]` as a NonZero each. What reads both, as a sum, would have shapes of
which TVM cannot know that they are the same.
"""

import onnx
from onnx import helper, numpy_helper

_CHOOSING = {"Compress", "NonMaxSuppression", "NonZero", "Unique"}

_MOST_ELEMENTS = 64
"""Larger constants are not compared: limits and axes are small."""


def join_chosen(model: onnx.ModelProto) -> None:
    """Make such a node an Identity of one before that computes the same of the same values, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Whose constants are folded. Subgraphs stay as they are.
    """
    graph = model.graph
    if sum(node.op_type in _CHOOSING for node in graph.node) < 2:
        return
    same = _equal_constants(graph)
    seen: dict[tuple[object, ...], onnx.NodeProto] = {}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        inputs = (same.get(name, name) for name in node.input)
        attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
        earlier = seen.setdefault((node.domain, node.op_type, *inputs, *attributes), node)
        results = {name: first for name, first in zip(node.output, earlier.output, strict=False) if name}
        if earlier is node or len(earlier.output) < len(node.output) or not all(results.values()):
            nodes.append(node)
            continue
        same |= {name: same.get(first, first) for name, first in results.items()}
        if node.op_type in _CHOOSING:
            nodes += [helper.make_node("Identity", [same[name]], [name]) for name in results]
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _equal_constants(graph: onnx.GraphProto) -> dict[str, str]:
    """Of each small constant the first one that is equal, by name."""
    first: dict[tuple[object, ...], str] = {}
    same: dict[str, str] = {}
    for tensor in graph.initializer:
        if len(tensor.dims) <= 1 and sum(tensor.dims) <= _MOST_ELEMENTS:
            key = tensor.data_type, *tensor.dims, numpy_helper.to_array(tensor).tobytes()
            same[tensor.name] = first.setdefault(key, tensor.name)
    return same
