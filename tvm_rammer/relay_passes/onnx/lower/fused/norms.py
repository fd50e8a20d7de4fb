"""Norms of rows as ONNX Runtime's optimisers write them: of sums, by the root of the mean square, before opset 17."""

import numpy as np
from onnx import TensorProto

from ...emit import Emitter, NodeView
from ..layers import mean_over, moments

_SIMPLIFIED_EPSILON = 1e-5
_SKIP_EPSILON = 1e-12
_PLAIN_EPSILON = 1e-5
_SINCE = 17
"""The first opset with LayerNormalization."""


def layer_norm(emit: Emitter, value: str, parameters: list[str], epsilon: float, axes: list[int] | None = None) -> str:
    """Normalise rows; before opset 17 by other operators, in single precision where the rows are of half.

    Parameters
    ----------
    emit : Emitter
    value : str
    parameters : list of str
        The scale, and perhaps what is added.
    epsilon : float
    axes : list of int, optional
        All from one on, counted from the last; the last one by default.
    """
    axes = axes or [-1]
    if emit.opset >= _SINCE:
        return emit("LayerNormalization", value, *parameters, axis=axes[0], epsilon=epsilon)
    half = emit.dtype == np.float16
    x = emit("Cast", value, to=TensorProto.FLOAT) if half else value
    _, centred, variance = moments(emit, x, axes)
    least = emit.constant(np.array(epsilon, np.float32 if half else emit.dtype))
    made = emit("Div", centred, emit("Sqrt", emit("Add", variance, least)))
    made = emit("Cast", made, to=TensorProto.FLOAT16) if half else made
    for kind, parameter in zip(("Mul", "Add"), parameters, strict=False):
        made = emit(kind, made, parameter)
    return made


def _layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, axis = node.dims(0), node.attribute("axis", -1)
    if dims is None or any(node.node.output[1:]):
        return None
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of the shape {dims}")
    axes = list(range(axis % len(dims) - len(dims), 0))
    parameters = [name for name in (node.input(1), node.input(2)) if name]
    emit.name(layer_norm(emit, node.input(0), parameters, node.attribute("epsilon", _PLAIN_EPSILON), axes), node.output)
    return emit


def _skip_layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    total = _summed(node, emit, [0, 1, 4])
    if total is None:
        return None
    parameters = [name for name in (node.input(2), node.input(3)) if name]
    emit.name(layer_norm(emit, total, parameters, node.attribute("epsilon", _SKIP_EPSILON)), node.output)
    return emit


def _skip_simplified_layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    total = _summed(node, emit, [0, 1, 3])
    return None if total is None else _scaled(node, emit, total, node.input(2))


def _simplified_layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, axis = node.dims(0), node.attribute("axis", -1)
    if dims is None or axis not in (-1, len(dims) - 1) or any(node.node.output[1:]):
        return None
    return _scaled(node, emit, node.input(0), node.input(1))


def _summed(node: NodeView, emit: Emitter, terms: list[int]) -> str | None:
    """The sum that is normalised, which is the fourth result, too; None where mean or deviation are results."""
    if any(node.node.output[1:3]):
        return None
    first, *others = (node.input(i) for i in terms if node.input(i))
    for other in others:
        first = emit("Add", first, other)
    if any(node.node.output[3:4]):
        emit.name(first, node.node.output[3])
    return first


def _scaled(node: NodeView, emit: Emitter, value: str, scale: str) -> Emitter:
    """By the root of the mean square of the last axis."""
    mean = mean_over(emit, emit("Mul", value, value), [-1])
    mean = emit("Add", mean, emit.number(node.attribute("epsilon", _SIMPLIFIED_EPSILON)))
    emit.name(emit("Mul", emit("Div", value, emit("Sqrt", mean)), scale), node.output)
    return emit


NORMS = {
    ("com.microsoft", "LayerNormalization"): _layer_norm,
    ("com.microsoft", "SimplifiedLayerNormalization"): _simplified_layer_norm,
    ("com.microsoft", "SkipLayerNormalization"): _skip_layer_norm,
    ("com.microsoft", "SkipSimplifiedLayerNormalization"): _skip_simplified_layer_norm,
}
"""By domain and name."""
