"""Layers of diffusion models as ONNX Runtime's optimisers fuse them for GPUs, with channels last."""

import math

from onnx import TensorProto

from ...emit import Emitter, NodeView
from ..elementwise import element
from ..norms.moments import deviation, moments, wide_dtype, widened

_EPSILON = 1e-5


def _group_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    return _normalised(node, emit, node.input(0))


def _skip_group_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of a sum, which is the second result."""
    dims, skip = node.dims(0), node.dims(3)
    if dims is None or skip is None:
        return None
    last = node.attribute("channels_last", 1)
    other = node.input(3)
    if len(skip) == 2:
        other = emit.reshape(other, [skip[0], 1, 1, skip[1]] if last else [*skip, 1, 1])
    total = emit("Add", node.input(0), other)
    if node.input(4):
        total = emit("Add", total, node.input(4) if last else emit.reshape(node.input(4), [-1, 1, 1]))
    if any(node.node.output[1:2]):
        emit.name(total, node.node.output[1])
    return _normalised(node, emit, total)


def _normalised(node: NodeView, emit: Emitter, value: str) -> Emitter | None:
    """Groups of channels by their moments; then a scale and a bias of single precision, and perhaps a SiLU."""
    dims, elem, groups = node.dims(0), element(node, 0), node.attribute("groups", 0)
    if dims is None or not elem:
        return None
    last, activation = node.attribute("channels_last", 1), node.attribute("activation", 0)
    node.require(len(dims) == 4 and activation in (0, 1), f"the shape {dims} and the activation {activation}")
    channels = dims[3] if last else dims[1]
    node.require(groups > 0 and channels % groups == 0, f"{groups} groups of {channels} channels")
    each = [channels // groups, math.prod(dims[1:]) // channels]
    apart, axes = ([dims[0], each[1], groups, each[0]], [1, 3]) if last else ([dims[0], groups, *each], [2, 3])
    half = emit.is_half
    _, centred, variance = moments(emit, emit.reshape(widened(emit, value), apart), axes)
    divisor = deviation(emit, variance, node.attribute("epsilon", _EPSILON), wide_dtype(emit))
    made = emit.reshape(emit("Div", centred, divisor), dims)
    for kind, index in (("Mul", 1), ("Add", 2)):
        parameter = emit("Cast", node.input(index), to=TensorProto.FLOAT if half else elem)
        made = emit(kind, made, parameter if last else emit.reshape(parameter, [-1, 1, 1]))
    if activation:
        made = emit("Mul", made, emit("Sigmoid", made))
    emit.name(emit("Cast", made, to=elem) if half else made, node.output)
    return emit


def _bias_add(node: NodeView, emit: Emitter) -> Emitter:
    emit.name(emit("Add", emit("Add", node.input(0), node.input(1)), node.input(2)), node.output)
    return emit


def _bias_split_gelu(node: NodeView, emit: Emitter) -> Emitter | None:
    """The first half of the channels, times a GELU of the second one."""
    dims = node.dims(0)
    if dims is None:
        return None
    node.require(dims[-1] % 2 == 0, f"the shape {dims}, whose channels have no halves")
    total, width, last = emit("Add", node.input(0), node.input(1)), dims[-1] // 2, len(dims) - 1
    first, second = (emit.part(total, last, n * width, (n + 1) * width) for n in (0, 1))
    curve = emit("Add", emit("Erf", emit("Mul", second, emit.number(math.sqrt(0.5)))), emit.number(1.0))
    gate = emit("Mul", emit("Mul", second, emit.number(0.5)), curve)
    emit.name(emit("Mul", first, gate), node.output)
    return emit


DIFFUSION = {
    ("com.microsoft", "BiasAdd"): _bias_add,
    ("com.microsoft", "BiasSplitGelu"): _bias_split_gelu,
    ("com.microsoft", "GroupNorm"): _group_norm,
    ("com.microsoft", "SkipGroupNorm"): _skip_group_norm,
}
"""By domain and name."""
