"""Operators that ONNX had as experiments and withdrew. ONNX Runtime has kept them up to opset 9.

Converters from CoreML and Caffe wrote them.
"""

from collections.abc import Callable

import numpy as np

from ...emit import Emitter, NodeView
from ..elementwise import element


def _affine(node: NodeView, emit: Emitter) -> Emitter | None:
    if not element(node, 0):
        return None
    scaled = emit("Mul", node.input(0), emit.number(node.attribute("alpha", 1.0)))
    emit.name(emit("Add", scaled, emit.number(node.attribute("beta", 0.0))), node.output)
    return emit


def _image_scaler(node: NodeView, emit: Emitter) -> Emitter | None:
    """One scale for all pixels, one bias for each channel."""
    dims, bias = node.dims(0), node.attribute("bias", [])
    if dims is None:
        return None
    node.require(len(dims) == 4 and len(bias) == dims[1], f"{len(bias)} biases for the shape {dims}")
    scaled = emit("Mul", node.input(0), emit.number(node.attribute("scale", 1.0)))
    column = emit.constant(np.array(bias, emit.dtype).reshape(1, -1, 1, 1))
    emit.name(emit("Add", scaled, column), node.output)
    return emit


def _scaled(kind: str) -> Callable[[NodeView, Emitter], Emitter | None]:
    """A function of beta x, times alpha, which ONNX Runtime has no defaults for."""

    def lower(node: NodeView, emit: Emitter) -> Emitter | None:
        alpha, beta = node.attribute("alpha", None), node.attribute("beta", None)
        if not element(node, 0) or alpha is None or beta is None:
            return None
        value = emit(kind, emit("Mul", node.input(0), emit.number(beta)))
        emit.name(emit("Mul", value, emit.number(alpha)), node.output)
        return emit

    return lower


def _crop(node: NodeView, emit: Emitter) -> Emitter | None:
    """An image without borders on the left, above, on the right and below; or of a height and width."""
    dims, border, size = node.dims(0), node.attribute("border", []), node.attribute("scale", None)
    if dims is None:
        return None
    node.require(len(dims) == 4 and len(border) == 4, f"{len(border)} borders for the shape {dims}")
    node.require(size is None or len(size) == 2, f"the scale {size}, which is no height and width")
    left, top, right, bottom = border
    ends = [dims[2] - bottom, dims[3] - right] if size is None else [top + size[0], left + size[1]]
    fits = 0 <= top <= ends[0] <= dims[2] and 0 <= left <= ends[1] <= dims[3]
    node.require(fits, f"the borders {list(border)} and the scale {size} for the shape {dims}")
    value = node.input(0)
    for axis, begin, end in ((2, top, ends[0]), (3, left, ends[1])):  # a Slice has no attributes in TVM's frontend
        value = emit("Gather", value, emit.constant(np.arange(begin, end)), axis=axis)
    emit.name(value, node.output)
    return emit


WITHDRAWN = {
    ("", "Affine"): _affine,
    ("", "Crop"): _crop,
    ("", "ImageScaler"): _image_scaler,
    ("", "ParametricSoftplus"): _scaled("Softplus"),
    ("", "ScaledTanh"): _scaled("Tanh"),
}
"""By domain and name."""
