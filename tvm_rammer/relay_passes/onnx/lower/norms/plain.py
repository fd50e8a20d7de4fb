"""Norms of ONNX's own in forms that TVM's frontend lacks, or computes in too narrow a type."""

import math

import numpy as np
from onnx import TensorProto

from ...emit import HALVES, Emitter, NodeView
from ..elementwise import element, numpy_type
from .moments import deviation, moments, widened


def _batch_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """As it trains: by the batch's own mean and variance, which go into the running ones. A vector has one channel."""
    dims = node.dims(0)
    if dims is not None and len(dims) == 1 and not any(node.node.output[1:]):
        table, rest = emit.reshape(node.input(0), [*dims, 1]), node.node.input[1:]
        normal = emit("BatchNormalization", table, *rest, epsilon=node.attribute("epsilon", 1e-5))
        emit.name(emit.reshape(normal, dims), node.output)
        return emit
    if not node.attribute("spatial", 1) and not any(node.node.output[1:]):
        return _norm_of_each(node, emit, dims)
    if dims is None or not (node.attribute("training_mode", 0) or any(node.node.output[1:])):
        return None
    if not node.attribute("training_mode", 0):
        node.refuse("has the results of training in a form before opset 14", "export it again with opset 14 or later")
    axes = [a for a in range(len(dims)) if a != 1]
    column = [-1] + [1] * (len(dims) - 2)
    x, momentum = node.input(0), node.attribute("momentum", 0.9)
    mean, centred, variance = moments(emit, x, axes)
    value = emit("Div", centred, _deviation(node, emit, variance, element(node, 0)))
    emit.name(_scaled(node, emit, value, column), node.output)
    for name, before, now in zip(node.node.output[1:3], (3, 4), (mean, variance), strict=False):
        if name:
            kept = emit("Mul", node.input(before), emit.number(momentum))
            added = emit("Mul", emit.reshape(now, [-1]), emit.number(1 - momentum))
            emit.name(emit("Add", kept, added), name)
    return emit


def _norm_of_each(node: NodeView, emit: Emitter, dims: list[int] | None) -> Emitter | None:
    """With a scale, a bias, a mean and a variance for each number of a sample, as it might be up to opset 8."""
    if dims is None or len(dims) < 3 or node.dims(1) != dims[1:]:
        return None
    x, scale, bias, mean, variance = node.node.input
    normal = emit("Div", emit("Sub", x, mean), _deviation(node, emit, variance, element(node, 4)))
    scaled = emit("Mul", normal, scale)
    emit.name(emit("Add", scaled, bias), node.output)
    return emit


def _layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """With its mean and deviation as further results."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem:
        return None
    if not any(node.node.output[1:]):
        return _spread(node, emit, dims, elem)
    axis, stash = node.attribute("axis", -1), node.attribute("stash_type", 1)
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of the shape {dims}")
    axes = list(range(axis % len(dims), len(dims)))
    mean, centred, variance = moments(emit, emit("Cast", node.input(0), to=stash), axes)
    inverse = emit("Reciprocal", _deviation(node, emit, variance, stash))
    value = emit("Mul", emit("Cast", emit("Mul", centred, inverse), to=elem), node.input(1))
    if node.input(2):
        value = emit("Add", value, node.input(2))
    for name, made in zip(node.node.output, (value, mean, inverse), strict=False):
        if name:
            emit.name(made, name)
    return emit


def _rms_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, elem = node.dims(0), element(node, 0)
    return _spread(node, emit, dims, elem) if dims is not None and elem else None


def _spread(node: NodeView, emit: Emitter, dims: list[int], elem: int) -> Emitter | None:
    """A scale and a bias that are broadcast: TVM has them of the shape that is normalised."""
    axis = node.attribute("axis", -1)
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of the shape {dims}")
    shape = dims[axis % len(dims) :]
    given = [(name, node.dims(i)) for i, name in enumerate(node.node.input) if i and name]
    known = [(name, own) for name, own in given if own is not None]
    if len(known) < len(given) or all(own == shape for _, own in known):
        return None
    for _, own in known:
        node.require(_fits(own, dims), f"a scale or bias of the shape {own}, which does not fit {dims}")
    kind, target = node.node.op_type, emit.constant(np.array(shape, np.int64))
    how = node.given(("axis", "epsilon", "stash_type"))
    if all(_fits(own, [1] * (len(dims) - len(shape)) + shape) for _, own in known):
        parts = [emit.reshape(name, own[-len(shape) :]) if len(own) > len(shape) else name for name, own in known]
        parts = [emit("Expand", part, target) for part in parts]
        emit.last(kind, node.input(0), *parts, outputs=node.node.output[:1], **how)
        return emit
    value = emit(kind, node.input(0), emit.constant(np.ones(shape, numpy_type(elem))), **how)
    for step, (name, _) in zip(("Mul", "Add"), known, strict=False):
        value = emit(step, value, name)
    emit.name(value, node.output)
    return emit


def _fits(shape: list[int], whole: list[int]) -> bool:
    """Whether a shape is broadcast to another one, which stays as it is."""
    tail = whole[len(whole) - len(shape) :]
    return len(shape) <= len(whole) and all(own in (1, n) for own, n in zip(shape, tail, strict=True))


def _group_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """A scale and a bias for each channel, as they are since opset 21."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem or emit.opset < 21:
        return None
    value = emit("Cast", emit.reshape(_by_groups(node, emit, dims), dims), to=elem)
    emit.name(_scaled(node, emit, value, [-1] + [1] * (len(dims) - 2)), node.output)
    return emit


def _early_group_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """A scale and a bias for each group of channels, as they were from opset 18 on."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem or emit.opset < 18:
        return None
    value = emit("Cast", _by_groups(node, emit, dims), to=elem)
    emit.name(emit.reshape(_scaled(node, emit, value, [-1, 1]), dims), node.output)
    return emit


def _by_groups(node: NodeView, emit: Emitter, dims: list[int]) -> str:
    """Channels by groups of them, [batch, groups, numbers], in the type of the moments."""
    groups, stash = node.attribute("num_groups", 1), node.attribute("stash_type", 1)
    node.require(groups > 0 and dims[1] % groups == 0, f"{groups} groups of {dims[1]} channels")
    x = emit.reshape(emit("Cast", node.input(0), to=stash), [dims[0], groups, -1])
    _, centred, variance = moments(emit, x, [2])
    return emit("Div", centred, _deviation(node, emit, variance, stash))


def _scaled(node: NodeView, emit: Emitter, value: str, column: list[int]) -> str:
    """Multiplied by the second input, with the third one added, each of them as a column."""
    scale, bias = (emit.reshape(node.input(i), column) for i in (1, 2))
    return emit("Add", emit("Mul", value, scale), bias)


def _instance_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """Images as rows: a sum over one long axis is in full vectors."""
    dims, half = node.dims(0), emit.is_half
    if dims is None or (len(dims) < 4 and not half):
        return None
    given = [widened(emit, name) for name in node.node.input]
    rows = emit.reshape(given[0], [*dims[:2], math.prod(dims[2:])])
    normal = emit("InstanceNormalization", rows, *given[1:], epsilon=node.attribute("epsilon", 1e-5))
    normal = emit.reshape(normal, dims)
    emit.name(emit("Cast", normal, to=emit.elem) if half else normal, node.output)
    return emit


def _mean_variance(node: NodeView, emit: Emitter) -> Emitter | None:
    """Numbers that are all equal become 0: the deviation is never 0."""
    dims, elem = node.dims(0), element(node, 0)
    if dims is None or not elem:
        return None
    axes = list(node.attribute("axes", [0, 2, 3]))
    node.require(all(-len(dims) <= a < len(dims) for a in axes), f"axes {axes} of the shape {dims}")
    wide = TensorProto.FLOAT if elem in HALVES else elem
    _, centred, variance = moments(emit, widened(emit, node.input(0)), axes)
    divisor = emit("Add", emit("Sqrt", variance), emit.constant(np.array(1e-9, numpy_type(wide))))
    normal = emit("Div", centred, divisor)
    emit.name(normal if wide == elem else emit("Cast", normal, to=elem), node.output)
    return emit


def _deviation(node: NodeView, emit: Emitter, variance: str, elem: int) -> str:
    return deviation(emit, variance, node.attribute("epsilon", 1e-5), numpy_type(elem))


PLAIN_NORMS = {
    ("", "BatchNormalization"): _batch_norm,
    ("", "GroupNormalization"): _group_norm,
    ("com.microsoft", "GroupNormalization"): _early_group_norm,
    ("", "InstanceNormalization"): _instance_norm,
    ("", "LayerNormalization"): _layer_norm,
    ("", "MeanVarianceNormalization"): _mean_variance,
    ("", "RMSNormalization"): _rms_norm,
}
"""By domain and name."""
