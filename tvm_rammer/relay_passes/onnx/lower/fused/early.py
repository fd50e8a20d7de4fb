"""Operators that ONNX Runtime had before ONNX, and has kept in its domain. They are ONNX's own now.

Exporters of PyTorch models wrote them where an opset had no such operator.
"""

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ...emit import Emitter, NodeView
from ..elementwise import element, numpy_type

_MOST_INVERSE = 4
"""Of larger matrices the cofactors would be many products, and say less and less."""


def _same(node: NodeView, emit: Emitter) -> Emitter | None:
    """The operator of the same name, which has the same inputs and attributes."""
    if node.dims(0) is None:
        return None
    given: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    if node.node.op_type == "GridSample" and given.get("mode") == b"bicubic" and emit.opset >= 20:
        given["mode"] = b"cubic"
    elif node.node.op_type == "GridSample" and given.get("mode") == b"bilinear" and emit.opset >= 20:
        given["mode"] = b"linear"
    emit.last(node.node.op_type, *node.node.input, outputs=node.node.output, **given)
    return emit


def _trilu(node: NodeView, emit: Emitter) -> Emitter | None:
    """A choice between numbers and zeros, by a constant."""
    dims, diagonal, elem = node.dims(0), node.array(1), element(node, 0)
    if dims is None or not elem or (node.input(1) and diagonal is None):
        return None
    node.require(len(dims) >= 2, f"the shape {dims}, which has not two axes")
    move, upper = 0 if diagonal is None else int(diagonal.item()), node.attribute("upper", 1)
    kept = np.tri(dims[-2], dims[-1], move - 1 if upper else move, dtype=bool) ^ bool(upper)
    none = emit.constant(np.zeros((), numpy_type(elem)))
    emit.name(emit("Where", emit.constant(kept), node.input(0), none), node.output)
    return emit


def _expand_dims(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, axis = node.dims(0), node.array(1)
    if dims is None or axis is None:
        return None
    place = int(axis.item())
    node.require(-len(dims) - 1 <= place <= len(dims), f"axis {place} of the shape {dims}")
    place %= len(dims) + 1
    emit.name(emit.reshape(node.input(0), [*dims[:place], 1, *dims[place:]]), node.output)
    return emit


def _inverse(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of small matrices, by cofactors: those of cameras and of motions are such."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem:
        return None
    node.require(len(dims) >= 2 and dims[-1] == dims[-2], f"the shape {dims}, whose last two sizes are to be equal")
    size, lead = dims[-1], dims[:-2]
    if not 1 <= size <= _MOST_INVERSE:
        node.refuse(f"is of {size} x {size} matrices", f"up to {_MOST_INVERSE} x {_MOST_INVERSE} can be compiled")
    half = elem == TensorProto.FLOAT16
    value = emit("Cast", node.input(0), to=TensorProto.FLOAT) if half else node.input(0)
    dtype = np.dtype(np.float32) if half else numpy_type(elem)
    signs = np.array([[(-1.0) ** (row + column) for column in range(size)] for row in range(size)], dtype)
    flat = emit.reshape(value, [*lead, size * size])
    minors = emit.constant(np.ones([*lead, 1], dtype))
    if size > 1:
        places = [
            [r * size + c for r in range(size) if r != row for c in range(size) if c != column]
            for row in range(size)
            for column in range(size)
        ]
        chosen = emit("Gather", flat, emit.constant(np.array(places, np.int64)), axis=len(lead))
        minors = emit("Det", emit.reshape(chosen, [*lead, size * size, size - 1, size - 1]))
    cofactors = emit("Mul", emit.reshape(minors, [*lead, size, size]), emit.constant(signs))
    first = [emit.part(each, len(lead), 0, 1) for each in (value, cofactors)]
    whole = emit.sums(emit("Mul", *first), len(lead) + 1)
    turned = emit("Transpose", cofactors, perm=[*range(len(lead)), len(lead) + 1, len(lead)])
    made = emit("Div", turned, whole)
    emit.name(emit("Cast", made, to=elem) if half else made, node.output)
    return emit


EARLY = {
    ("com.microsoft", "ExpandDims"): _expand_dims,
    ("com.microsoft", "GatherND"): _same,
    ("com.microsoft", "GridSample"): _same,
    ("com.microsoft", "Inverse"): _inverse,
    ("com.microsoft", "Pad"): _same,
    ("com.microsoft", "Trilu"): _trilu,
}
"""By domain and name."""
