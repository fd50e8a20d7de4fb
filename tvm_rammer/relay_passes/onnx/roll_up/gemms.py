"""Gemms in the steps of a Scan as products and sums, their weights transposed once and outside of it."""

import onnx
from onnx import helper

from ..emit import Constants, Emitter, Types, attribute
from ..infer import static_dims
from .scans import body_of, emit_again, replace_scans

_GEMMS = (("", "Gemm"), ("ai.onnx", "Gemm"))


def take_gemms_apart(model: onnx.ModelProto) -> bool:
    """Write Gemms in Scans, with weights that are no part of the step, as MatMul and Add, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later.

    Returns
    -------
    bool
        Whether there were any.
    """
    return replace_scans(model, _apart)


def _apart(scan: onnx.NodeProto, _constants: Constants, types: Types, opset: int) -> Emitter | None:
    """The Scan without such Gemms; None where it has none."""
    emit, body = Emitter(scan, opset, how="products"), body_of(scan)
    inside = {value.name for value in (*body.input, *body.initializer)}
    inside |= {name for node in body.node for name in node.output}
    nodes: list[onnx.NodeProto] = []
    for node in body.node:
        if not _is_plain(node) or node.input[1] in inside or len(static_dims(types.get(node.input[1])) or ()) != 2:
            nodes.append(node)
            continue
        weights, result = node.input[1], node.output[0]
        if attribute(node, "transB", 0):
            weights = emit("Transpose", weights, perm=[1, 0])
        bias = node.input[2] if len(node.input) > 2 else ""
        product = f"{emit.prefix}{result}" if bias else result
        nodes.append(helper.make_node("MatMul", [node.input[0], weights], [product]))
        if bias:
            nodes.append(helper.make_node("Add", [product, bias], [result]))
    if nodes == list(body.node):
        return None
    del body.node[:]
    body.node.extend(nodes)
    return emit_again(emit, scan, *scan.input, body=body)


def _is_plain(node: onnx.NodeProto) -> bool:
    """Whether a node is a Gemm that multiplies, and adds, just what it reads."""
    scaled = attribute(node, "alpha", 1.0) != 1.0 or attribute(node, "beta", 1.0) != 1.0
    return (node.domain, node.op_type) in _GEMMS and not scaled and not attribute(node, "transA", 0)
