"""Resize as ONNX defines it: on each axis a choice of elements, a weighted sum of a few, or a product with a matrix.

Columns grow before rows, so that few elements are chosen one by one, and rows shrink before columns. What only repeats
elements is left to TVM.
"""

import functools
import math
from collections import ChainMap
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ..data_sizes.coordinates import BEFORE_11, Axis, cubic, read_at, rounded
from ..emit import Emitter, NodeView
from .elementwise import INTEGERS, Lowering, element, in_single, numpy_type

_MAX_TAPS = 4
"""More elements for each result are summed up by a product. It multiplies all others by 0, so that infinity spreads."""


def _resize(node: NodeView, emit: Emitter) -> Emitter | None:
    if emit.opset < 11:
        return _of_old(node, emit)
    dims = node.dims(0)
    if dims is None or any(node.input(i) and node.array(i) is None for i in (1 if _crops(node) else 2, 2, 3)):
        return None
    axes = _axes(node, dims)
    if not _native(node, axes, len(dims)):
        return _resized(node, emit, axes, dims)
    scales = node.array(2)
    return _without_scales(node, emit) if scales is not None and not scales.size else None


def _without_scales(node: NodeView, emit: Emitter) -> Emitter:
    """The same node with sizes alone: before opset 13 scales had to be there, too, without elements."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    emit.last("Resize", node.input(0), "", "", node.input(3), outputs=node.node.output, **attributes)
    return emit


def _of_old(node: NodeView, emit: Emitter) -> Emitter | None:
    """Resize of opset 10 and Upsample, which read at x / scale."""
    dims, scales = node.dims(0), node.array(1)
    given = list(node.attribute("scales", [])) if scales is None else scales.tolist()
    if dims is None or not given:
        return None
    attributes = {"mode": _mode(node), "coordinate_transformation_mode": "asymmetric", "nearest_mode": BEFORE_11}
    name = f"{emit.prefix}scales"
    constants = {name: numpy_helper.from_array(np.array(given, np.float32), name)}
    as_new = helper.make_node("Resize", [node.input(0), "", name], list(node.node.output), node.node.name, **attributes)
    view = NodeView(as_new, ChainMap(constants, dict(node.constants)), node.types)
    return _resized(view, emit, _axes(view, dims), dims)


def _mode(node: NodeView) -> str:
    mode = _text(node, "mode", "nearest")
    return "linear" if mode == "bilinear" else mode


def _resized(node: NodeView, emit: Emitter, axes: Sequence[Axis], dims: Sequence[int]) -> Emitter:
    mode, coordinates = _text(node, "mode", "nearest"), _text(node, "coordinate_transformation_mode", "half_pixel")
    node.require(mode in ("nearest", "linear", "cubic"), f"the mode {mode!r}")
    if mode != "nearest" and (kind := element(node, 0)) in {*INTEGERS, TensorProto.BOOL}:
        what = "booleans" if kind == TensorProto.BOOL else "integers"
        node.refuse(f"interpolates {what}, mode {mode}", "cast them to float32 before it, and what comes out back")
    value = node.input(0)
    outside: list[tuple[Axis, np.ndarray]] = []
    shrinking = [a for a in axes if a.out < a.size]
    growing = [a for a in axes if a.out >= a.size]
    for axis in (*shrinking, *reversed(growing)):
        x = read_at(axis, coordinates, np.arange(axis.out, dtype=np.float64), np.where)
        if x is None:
            node.deny(f"the coordinate_transformation_mode {coordinates!r}")
        if coordinates == "tf_crop_and_resize":
            outside.append((axis, np.asarray((x < 0) | (x > axis.size - 1))))
        if mode == "nearest":
            value = _nearest(node, emit, value, axis, x)
        else:
            value = _weighted(emit, value, axis, *_taps(node, axis, mode, x), len(dims))
    for axis, mask in outside:
        if mask.any():
            shape = [-1] + [1] * (len(dims) - 1 - axis.axis)
            instead = np.array(node.attribute("extrapolation_value", 0.0)).astype(numpy_type(element(node, 0)))
            value = emit("Where", emit.constant(mask.reshape(shape)), emit.constant(instead), value)
    emit.name(value, node.output)
    return emit


def _text(node: NodeView, name: str, default: str) -> str:
    value = node.attribute(name, default)
    return value.decode() if isinstance(value, bytes) else value


def _crops(node: NodeView) -> bool:
    return _text(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"


def _axes(node: NodeView, dims: Sequence[int]) -> list[Axis]:
    """The axes that are resized, those that stay as they are left out."""
    given = [a % len(dims) for a in node.attribute("axes", range(len(dims)))]
    roi, scales, sizes = node.array(1), node.array(2), node.array(3)
    count = len(given)
    if scales is not None and scales.size:
        node.require(scales.size == count and bool((scales > 0).all()), f"scales {scales.tolist()} for {count} axes")
        factors = [float(s) for s in scales]
        outs = [math.floor(np.float32(dims[a]) * s) for a, s in zip(given, scales, strict=True)]
    else:
        known = [] if sizes is None else sizes.tolist()
        node.require(len(known) == count, f"sizes {known} for {count} axes")
        outs, factors = _outs(node, [dims[a] for a in given], known)
    node.require(all(0 < n < 2**31 for n in outs), f"sizes {outs}, which are from 1 to {2**31 - 1}")
    ends = np.concatenate([np.zeros(count), np.ones(count)]) if roi is None or not roi.size else roi
    crops = _crops(node)
    found = [
        Axis(a, dims[a], out, factor, float(ends[i]), float(ends[i + count]))
        for i, (a, out, factor) in enumerate(zip(given, outs, factors, strict=True))
    ]
    return [a for a in found if a.out != a.size or a.scale != 1 or (crops and (a.begin, a.end) != (0, 1))]


def _outs(node: NodeView, dims: Sequence[int], sizes: Sequence[int]) -> tuple[list[int], list[float]]:
    """Sizes and scales where sizes are given, by the attribute `keep_aspect_ratio_policy`."""
    factors = [n / d for n, d in zip(sizes, dims, strict=True)]
    policy = _text(node, "keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return list(sizes), factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [math.floor(factor * d + 0.5) for d in dims], [factor] * len(dims)


def _native(node: NodeView, axes: Sequence[Axis], rank: int) -> bool:
    """Whether TVM's frontend reads a node right."""
    mode, coordinates = _text(node, "mode", "nearest"), _text(node, "coordinate_transformation_mode", "half_pixel")
    plain = not node.attribute("antialias", 0) and not node.attribute("axes", None)
    plain = plain and _text(node, "keep_aspect_ratio_policy", "stretch") == "stretch" and rank == 4
    if not plain or any(a.axis < 2 or a.out != a.size * a.scale or a.out < 2 for a in axes):
        return False
    floors = mode == "nearest" and _text(node, "nearest_mode", "round_prefer_floor") == "floor"
    return coordinates == "asymmetric" and floors and all(a.scale == int(a.scale) for a in axes)


def _nearest(node: NodeView, emit: Emitter, value: str, axis: Axis, x: np.ndarray) -> str:
    mode = _text(node, "nearest_mode", "round_prefer_floor")
    if mode == BEFORE_11:
        x, mode = x.astype(np.float32), "ceil" if axis.scale < 1 else "floor"
    places = rounded(x, mode, np.floor, np.ceil)
    if places is None:
        node.deny(f"the nearest_mode {mode!r}")
    index = np.clip(places, 0, axis.size - 1).astype(np.int64)
    return emit("Gather", value, emit.constant(index), axis=axis.axis)


def _taps(node: NodeView, axis: Axis, mode: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elements of the axis that each result is a sum of, and their weights: both [out, elements]."""
    stretch = min(axis.scale, 1.0) if node.attribute("antialias", 0) else 1.0
    reach = 2 if mode == "cubic" else 1
    first = math.floor(-reach / stretch) + 1
    left = np.ceil(x) - 1
    places = np.arange(first, 2 - first)[None]
    away = np.abs((places - (x - left)[:, None]) * stretch)
    if mode == "cubic":
        coefficients = cubic(away, node.attribute("cubic_coeff_a", -0.75), np.where)
    else:
        coefficients = np.clip(1 - away, 0, 1)
    where = left[:, None] + places
    if node.attribute("exclude_outside", 0):
        coefficients = coefficients * ((where >= 0) & (where < axis.size))
    coefficients = coefficients / coefficients.sum(axis=1, keepdims=True)
    return np.clip(where, 0, axis.size - 1).astype(np.int64), coefficients


def _weighted(emit: Emitter, value: str, axis: Axis, elements: np.ndarray, weights: np.ndarray, rank: int) -> str:
    """Weighted sums of elements along an axis."""
    if elements.shape[1] > _MAX_TAPS:
        matrix = np.zeros((axis.out, axis.size))
        np.add.at(matrix, (np.broadcast_to(np.arange(axis.out)[:, None], elements.shape), elements), weights)
        return _product(emit, value, axis, matrix, rank)
    shape = [-1] + [1] * (rank - 1 - axis.axis)
    terms = [
        emit(
            "Mul",
            emit("Gather", value, emit.constant(np.ascontiguousarray(which)), axis=axis.axis),
            emit.constant(weight.reshape(shape).astype(emit.dtype)),
        )
        for which, weight in zip(elements.T, weights.T, strict=True)
    ]
    return functools.reduce(lambda a, b: emit("Add", a, b), terms)


def _product(emit: Emitter, value: str, axis: Axis, weights: np.ndarray, rank: int) -> str:
    if axis.axis == rank - 2:
        return emit("MatMul", emit.constant(weights.astype(emit.dtype)), value)
    matrix = emit.constant(np.ascontiguousarray(weights.T).astype(emit.dtype))
    if axis.axis == rank - 1:
        return emit("MatMul", value, matrix)
    order = [*(a for a in range(rank) if a != axis.axis), axis.axis]
    value = emit("MatMul", emit("Transpose", value, perm=order), matrix)
    return emit("Transpose", value, perm=[int(i) for i in np.argsort(order)])


def _interpolated(lower: Lowering) -> Lowering:
    """Sums of half precision are computed in float32; the nearest elements are what they are."""
    wide = in_single(lower)
    return lambda node, emit: (lower if _mode(node) == "nearest" else wide)(node, emit)


RESIZES = {("", "Resize"): _interpolated(_resize), ("", "Upsample"): _interpolated(_of_old)}
"""By domain and name."""
