"""Scans of a model, replaced by others that compute the same."""

from collections.abc import Callable
from typing import Any

import onnx
from onnx import helper

from ..emit import Constants, Emitter, Types, attribute, replace_nodes
from ..infer import static_dims
from ..read import default_opset

Change = Callable[[onnx.NodeProto, Constants, Types, int], Emitter | None]
"""Gets a Scan, the constants that it can see, the types of the model's values and the opset; as for `replace_nodes`."""


def replace_scans(model: onnx.ModelProto, change: Change) -> bool:
    """Replace Scans of a model, in place; whether any was replaced."""
    opset = default_opset(model)

    def replacement(node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        is_scan = node.op_type == "Scan" and node.domain in ("", "ai.onnx")
        return change(node, constants, types, opset) if is_scan else None

    return any(node.op_type == "Scan" for node in model.graph.node) and replace_nodes(model, replacement)


def emit_again(emit: Emitter, scan: onnx.NodeProto, *inputs: str, **changed: Any) -> Emitter:
    """Add a Scan with other inputs, and with some other attributes; the emitter."""
    given = {a.name: helper.get_attribute_value(a) for a in scan.attribute}
    emit.last("Scan", *inputs, outputs=list(scan.output), **(given | changed))
    return emit


def body_of(scan: onnx.NodeProto) -> onnx.GraphProto:
    """A copy of a Scan's body."""
    body = onnx.GraphProto()
    body.CopyFrom(attribute(scan, "body", None))
    return body


class ScanChange:
    """A Scan whose body is changed.

    Parameters
    ----------
    node : onnx.NodeProto
    constants : mapping of str to onnx.TensorProto
        All that the node can see.
    types : mapping of str to onnx.TypeProto.Tensor
    opset : int
    how : str
        As for `Emitter`.

    Attributes
    ----------
    node : onnx.NodeProto
    types : mapping of str to onnx.TypeProto.Tensor
    body : onnx.GraphProto
        A copy.
    own : dict of str to onnx.TensorProto
        Its constants.
    emit : Emitter
        Takes what comes in the place of the Scan.
    """

    def __init__(self, node: onnx.NodeProto, constants: Constants, types: Types, opset: int, how: str) -> None:
        self.node, self.types, self._constants = node, types, constants
        self.body = body_of(node)
        self.own = {tensor.name: tensor for tensor in self.body.initializer}
        self.emit = Emitter(node, opset, how=how)

    def dims(self, name: str) -> list[int] | None:
        """The static shape of a value; None where it is not known."""
        tensor = self.own.get(name) or self._constants.get(name)
        return list(tensor.dims) if tensor is not None else static_dims(self.types.get(name))
