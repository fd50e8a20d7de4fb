"""Shapes that only the data say, as tensors, for operators that TVM's frontend lets read tensors alone.

For TVM such a shape is no tensor, and neither is one extent of it. They stay what they are on their way to a Reshape
or the like, where extents keep their names.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ...emit import attribute
from ...fold import infer_types, static_dims
from ...inline import all_graphs
from ...read import default_opset

_SAME = frozenset(["Add", "Div", "Mul", "Sub"])
"""What makes an extent of extents and constants."""
_TAKES_SHAPES = frozenset(
    [
        "Cast",
        "CastLike",
        "Concat",
        "ConstantOfShape",
        "Gather",
        "Reshape",
        "Resize",
        "Shape",
        "Slice",
        "Squeeze",
        "Where",
    ]
)
"""Operators of TVM's frontend that read a shape wherever it is; of Expand it is the second input alone."""
_TAKES_EXTENTS = frozenset(["Concat", "ConstantOfShape", "Gather", "Range", "Resize", "Slice", "Trilu", "Unsqueeze"])


def read_as_tensors(model: onnx.ModelProto) -> None:
    """Put nodes that make a tensor between a shape, or an extent, and what reads a tensor, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Lowered and folded: shapes that are known are constants.
    """
    if not any(node.op_type == "Shape" for graph in all_graphs(model.graph) for node in graph.node):
        return
    types, opset = infer_types(model), default_opset(model)
    for graph in all_graphs(model.graph):
        _Graph(graph, types, opset).rewrite()


class _Graph:
    """What is known of the values of a graph: which are shapes, and which a single extent."""

    def __init__(self, graph: onnx.GraphProto, types: Mapping[str, onnx.TypeProto.Tensor], opset: int) -> None:
        self._graph, self._types, self._opset = graph, types, opset
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._outputs = {value.name for value in graph.output}
        self._shapes: set[str] = set()
        self._extents: set[str] = set()
        self._tensors: dict[str, str] = {}
        self._nodes: list[onnx.NodeProto] = []

    def rewrite(self) -> None:
        """Walk the nodes in their order."""
        for node in self._graph.node:
            if node.domain in ("", "ai.onnx") and node.op_type == "Shape":
                self._name(node)
                continue
            if any(name in self._shapes or name in self._extents for name in node.input):
                self._read(node)
            self._nodes.append(node)
        del self._graph.node[:]
        self._graph.node.extend(self._nodes)

    def _name(self, node: onnx.NodeProto) -> None:
        """Take a Shape for a shape; where it is a result of the graph, that is the tensor."""
        name = node.output[0]
        self._nodes.append(node)
        if name not in self._outputs:
            self._shapes.add(name)
        elif (dims := static_dims(self._types.get(name))) is not None:
            node.output[0] = f"{name}/shape"
            self._gather(node.output[0], dims[0], name)

    def _read(self, node: onnx.NodeProto) -> None:
        """Say what a node makes of a shape; let it read a tensor where it would read none."""
        result = node.output[0] in self._outputs
        made = None if result else self._made(node)
        if made is not None:
            made.add(node.output[0])
            return
        for index, name in enumerate(node.input):
            as_shape = node.op_type in _TAKES_SHAPES or (node.op_type, index) == ("Expand", 1)
            whole = result and index == 0 and node.op_type != "ConstantOfShape"
            if name in self._shapes and (whole or not as_shape or (result and node.op_type in ("Concat", "Where"))):
                node.input[index] = self._tensor(name)
            elif name in self._extents and (whole or node.op_type not in _TAKES_EXTENTS):
                node.input[index] = self._scalar(name)

    def _made(self, node: onnx.NodeProto) -> set[str] | None:
        """To which values that of a node belongs; None where it is a tensor."""
        first, others = node.input[0], list(node.input)[1:]
        constant, known = all(name in self._constants for name in others if name), self._shapes | self._constants.keys()
        to_int64 = node.op_type == "Cast" and attribute(node, "to", 0) == TensorProto.INT64
        if node.op_type in _SAME:
            return self._extents if all(map(self._is_number, node.input)) else None
        if first in self._extents:
            return {"Unsqueeze": self._shapes, "Cast": self._extents if to_int64 else None}.get(node.op_type)
        if node.op_type in ("Concat", "Where"):
            chosen = node.op_type == "Concat" or first in self._constants
            return self._shapes if chosen and all(name in known for name in node.input) else None
        if first not in self._shapes or not constant:
            return None
        if node.op_type == "Slice" or to_int64:
            return self._shapes
        scalar = node.op_type == "Gather" and not self._constants[others[0]].dims
        return self._extents if scalar or node.op_type == "Squeeze" else None

    def _is_number(self, name: str) -> bool:
        """Whether a value is an extent, or a constant like one."""
        tensor = self._constants.get(name)
        return name in self._extents or (tensor is not None and not tensor.dims)

    def _tensor(self, name: str) -> str:
        """A shape's extents as a tensor; the shape itself where their number is not known."""
        dims = static_dims(self._types.get(name))
        if dims is None or len(dims) != 1:
            return name
        if name not in self._tensors:
            self._tensors[name] = f"{name}/tensor"
            self._gather(name, dims[0], self._tensors[name])
        return self._tensors[name]

    def _scalar(self, name: str) -> str:
        """An extent as a tensor without axes."""
        if name not in self._tensors:
            self._tensors[name] = f"{name}/scalar"
            self._move("Unsqueeze", name, f"{name}/one")
            self._gather(f"{name}/one", 1, f"{name}/tensor")
            self._move("Squeeze", f"{name}/tensor", self._tensors[name])
        return self._tensors[name]

    def _move(self, kind: str, name: str, result: str) -> None:
        """Add or take away the first axis."""
        if self._opset < 13:
            self._nodes.append(helper.make_node(kind, [name], [result], axes=[0]))
        else:
            self._graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.int64), f"{result}/axes"))
            self._nodes.append(helper.make_node(kind, [name, f"{result}/axes"], [result]))

    def _gather(self, name: str, count: int, result: str) -> None:
        self._graph.initializer.append(numpy_helper.from_array(np.arange(count), f"{result}/places"))
        self._nodes.append(helper.make_node("Gather", [name, f"{result}/places"], [result], axis=0))
