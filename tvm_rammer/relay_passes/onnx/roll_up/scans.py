"""Scans of a model, replaced by others that compute the same."""

from collections.abc import Callable
from typing import Any

import onnx
from onnx import helper

from ..emit import Constants, Emitter, Types, replace_nodes
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
