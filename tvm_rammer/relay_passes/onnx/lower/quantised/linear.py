"""QuantizeLinear and DequantizeLinear with a scale for each block of an axis, and those of ONNX Runtime's domain.

The latter have numbers of 16 bits before ONNX's own, and are otherwise the same.
"""

import math

import numpy as np
from onnx import TensorProto, helper

from ...emit import Emitter, NodeView
from ..elementwise import element, numpy_type

_WHOLE = [getattr(TensorProto, kind) for kind in ("INT8", "UINT8", "INT16", "UINT16", "INT32")]
_LONG = (TensorProto.INT16, TensorProto.UINT16)


def _dequantise(node: NodeView, emit: Emitter) -> Emitter | None:
    """Differences of integers, times a scale, in single precision."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or elem not in _WHOLE or not _is_asked(node):
        return None
    scale, zero = (_spread(node, emit, i, dims) for i in (1, 2))
    if scale is None or (node.input(2) and zero is None):
        return None
    value = emit("Cast", node.input(0), to=TensorProto.INT32)
    if zero is not None:
        value = emit("Sub", value, emit("Cast", zero, to=TensorProto.INT32))
    value = emit("Mul", emit("Cast", value, to=TensorProto.FLOAT), emit("Cast", scale, to=TensorProto.FLOAT))
    emit.name(emit("Cast", value, to=node.attribute("output_dtype", 0) or element(node, 1)), node.output)
    return emit


def _quantise(node: NodeView, emit: Emitter) -> Emitter | None:
    """Rounded to the nearest integer, ties to the even one, moved, and kept within the range of the type."""
    dims = node.dims(0)
    elem = element(node, 2) if node.input(2) else node.attribute("output_dtype", 0) or TensorProto.UINT8
    if elem in _WHOLE and not _is_asked(node):
        return _in_single_precision(node, emit, elem)
    if dims is None or elem not in _WHOLE:
        return None
    scale, zero = (_spread(node, emit, i, dims) for i in (1, 2))
    if scale is None or (node.input(2) and zero is None):
        return None
    value, scale = (emit("Cast", name, to=TensorProto.FLOAT) for name in (node.input(0), scale))
    value = emit("Round", emit("Div", value, scale))
    if zero is not None:
        value = emit("Add", value, emit("Cast", zero, to=TensorProto.FLOAT))
    bounds = np.iinfo(numpy_type(elem))
    least, most = (emit.constant(np.array(n, np.float32)) for n in (bounds.min, bounds.max))
    emit.name(emit("Cast", emit("Clip", value, least, most), to=elem), node.output)
    return emit


def _in_single_precision(node: NodeView, emit: Emitter, elem: int) -> Emitter | None:
    """The same of numbers that TVM's frontend does not divide, or in whose type the result's bounds have no room."""
    data, exact = element(node, 0), node.attribute("precision", 0) == TensorProto.FLOAT
    crowded = data == TensorProto.FLOAT16 and elem in _LONG
    if data not in (TensorProto.INT32, TensorProto.BFLOAT16) and not crowded and not exact:
        return None
    given = [
        emit("Cast", node.input(i), to=TensorProto.FLOAT) if element(node, i) != TensorProto.FLOAT else node.input(i)
        for i in (0, 1)
    ]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute if a.name != "precision"}
    zero = [node.input(2)] if node.input(2) else []
    emit.last("QuantizeLinear", *given, *zero, outputs=node.node.output, **attributes)
    return emit


def _is_asked(node: NodeView) -> bool:
    """Whether TVM's frontend lacks this form."""
    return bool(node.attribute("block_size", 0)) or node.node.domain not in ("", "ai.onnx")


def _spread(node: NodeView, emit: Emitter, index: int, dims: list[int]) -> str | None:
    """A scale or a zero point in a shape that is broadcast to the numbers; None where its own shape is not known."""
    own, axis, block = node.dims(index), node.attribute("axis", 1), node.attribute("block_size", 0)
    if own is None or not node.input(index):
        return None
    if math.prod(own) == 1 and len(own) < 2 and not block:
        return emit.reshape(node.input(index), [])
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of the shape {dims}")
    axis %= len(dims)
    if not block:
        node.require(own == [dims[axis]], f"scales or zero points of the shape {own} for axis {axis} of {dims}")
        return emit.reshape(node.input(index), [-1] + [1] * (len(dims) - 1 - axis))
    fitting = [*dims[:axis], -(-dims[axis] // block), *dims[axis + 1 :]]
    node.require(
        block > 0 and own == fitting,
        f"scales or zero points of the shape {own} for blocks of {block} on axis {axis} of {dims}",
    )
    return emit("Gather", node.input(index), emit.constant(np.arange(dims[axis]) // block), axis=axis)


LINEAR = {
    (domain, kind): lower
    for domain in ("", "com.microsoft")
    for kind, lower in (("DequantizeLinear", _dequantise), ("QuantizeLinear", _quantise))
}
"""By domain and name."""
