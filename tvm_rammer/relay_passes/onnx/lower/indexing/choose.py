"""Operators that choose, move or make elements, by constant indices and masks."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from ...emit import Emitter, NodeView
from ..elementwise import element, numpy_type

_WIDER: dict[int, int] = {
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
}

_MOST_JOINED = 8
"""Copies of an array that Tile joins."""


def _one_hot(node: NodeView, emit: Emitter) -> Emitter | None:
    """The on value where an index is the position on the new axis; out of range there is none."""
    dims, depth = node.extents(0), node.array(1)
    if dims is None or (depth is None and not node.last):
        return None
    rank, axis = len(dims) + 1, node.attribute("axis", -1)
    node.require(-rank <= axis < rank, f"axis {axis} for indices of {len(dims)} axes")
    axis %= rank
    if depth is None:
        count = emit.reshape(emit("Cast", node.input(1), to=TensorProto.INT64), [])
        places = emit("Range", emit.constant(np.array(0, np.int64)), count, emit.constant(np.array(1, np.int64)))
    else:
        node.require(int(depth.item()) > 0, f"depth {int(depth.item())}")
        count = emit.constant(np.array(int(depth.item()), np.int64))
        places = emit.constant(np.arange(int(depth.item()), dtype=np.int64))
    index, elem = node.input(0), element(node, 0)
    if elem and numpy_type(elem).kind == "f":  # of what is not finite, or between two places, a cast makes an index
        beyond = emit("Cast", emit("Add", count, emit.constant(np.array(1, np.int64))), to=elem)
        whole = emit("And", emit("Less", emit("Abs", index), beyond), emit("Equal", emit("Floor", index), index))
        index = emit("Where", whole, index, beyond)
    index = emit.axes("Unsqueeze", emit("Cast", index, to=TensorProto.INT64), axis)
    below = emit("Less", index, emit.constant(np.array(0, np.int64)))
    index = emit("Where", below, emit("Add", index, count), index)
    places = emit.reshape(places, [-1] + [1] * (rank - 1 - axis))
    off, on = emit.part(node.input(2), 0, 0, 1), emit.part(node.input(2), 0, 1, 2)
    emit.name(emit("Where", emit("Equal", index, places), on, off), node.output)
    return emit


def _eye_like(node: NodeView, emit: Emitter) -> Emitter | None:
    dims = node.dims(0)
    elem = node.attribute("dtype", element(node, 0))
    if dims is None or not elem:
        return None
    node.require(len(dims) == 2, f"the shape {dims}, which has not two axes")
    emit.name(emit.constant(np.eye(dims[0], dims[1], k=node.attribute("k", 0)).astype(numpy_type(elem))), node.output)
    return emit


def _compress(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, chosen = node.dims(0), node.array(1)
    if dims is None or chosen is None:
        return None
    axis, value = node.attribute("axis", None), node.input(0)
    if axis is None:
        value, axis = emit.reshape(value, [-1]), 0
    index = np.flatnonzero(chosen).astype(np.int64)
    emit.name(emit("Gather", value, emit.constant(index), axis=axis), node.output)
    return emit


def _tile(node: NodeView, emit: Emitter) -> Emitter | None:
    """A few times side by side; else by tables of indices, for LLVM's vectors of several remainders are wrong on a
    processor with AVX-512.
    """
    dims, repeats = node.dims(0), node.array(1)
    if dims is None or repeats is None:
        return None
    counts = repeats.tolist()
    node.require(len(counts) == len(dims) and min(counts, default=0) >= 0, f"repeats {counts} for the shape {dims}")
    value = node.input(0)
    for axis, (count, size) in enumerate(zip(counts, dims, strict=True)):
        if 1 < count <= _MOST_JOINED:
            value = emit.join([value] * count, axis)
        elif count != 1:
            value = emit("Gather", value, emit.constant(np.tile(np.arange(size), count)), axis=axis)
    emit.name(value, node.output)
    return emit


def _center_crop_pad(node: NodeView, emit: Emitter) -> Emitter | None:
    """To a size around the middle; where a cut or a pad is uneven, less lies before than after."""
    dims, sizes = node.dims(0), node.array(1)
    if dims is None or sizes is None:
        return None
    axes = [a % len(dims) for a in node.attribute("axes", range(len(dims)))]
    node.require(len(axes) == sizes.size and bool((sizes > 0).all()), f"sizes {sizes.tolist()} for the axes {axes}")
    value, pads = node.input(0), [0] * 2 * len(dims)
    for axis, size in zip(axes, sizes.tolist(), strict=True):
        if size < dims[axis]:
            begin = (dims[axis] - size) // 2
            value = emit.part(value, axis, begin, begin + size)
        else:
            pads[axis] = (size - dims[axis]) // 2
            pads[axis + len(dims)] = size - dims[axis] - pads[axis]
    if any(pads):
        value = emit("Pad", value, emit.constant(np.array(pads, np.int64)))
    emit.name(value, node.output)
    return emit


def _space_to_depth(node: NodeView, emit: Emitter) -> Emitter | None:
    """With channels before the places within a block; TVM's frontend knows the other order only."""
    dims, block = node.dims(0), node.attribute("blocksize", 1)
    if dims is None or node.attribute("mode", b"DCR") != b"CRD":
        return None
    node.require(len(dims) == 4 and block > 0, f"blocksize {block} and the shape {dims}")
    node.require(dims[2] % block == 0 and dims[3] % block == 0, f"blocksize {block} and the shape {dims}")
    n, c, h, w = dims
    value = emit.reshape(node.input(0), [n, c, h // block, block, w // block, block])
    value = emit("Transpose", value, perm=[0, 1, 3, 5, 2, 4])
    emit.name(emit.reshape(value, [n, c * block * block, h // block, w // block]), node.output)
    return emit


def _top_k(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of integers that TVM's runtime cannot sort, as wider ones; sorted where any order would do."""
    elem, in_order = element(node, 0), node.attribute("sorted", 1)
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute if a.name != "sorted"}
    index = node.node.output[1] or f"{emit.prefix}index"
    if elem == TensorProto.UINT64:
        # By the order of the int64 numbers that have the other first bit.
        signed = emit("BitCast", node.input(0), to=TensorProto.INT64)
        signed = emit("BitwiseXor", signed, emit.constant(np.array(np.iinfo(np.int64).min)))
        emit.last("TopK", signed, node.input(1), outputs=[f"{emit.prefix}signed", index], **attributes)
        if node.output:
            emit.last("GatherElements", node.input(0), index, outputs=[node.output], axis=attributes.get("axis", -1))
        return emit
    if elem not in _WIDER:
        if in_order:
            return None
        emit.last("TopK", *node.node.input, outputs=node.node.output, **attributes)
        return emit
    wide, most = emit("Cast", node.input(0), to=_WIDER[elem]), f"{emit.prefix}most"
    emit.last("TopK", wide, node.input(1), outputs=[most, index], **attributes)
    if node.output:
        emit.last("Cast", most, outputs=[node.output], to=elem)
    return emit


def _squeeze(node: NodeView, emit: Emitter) -> Emitter | None:
    """Axes that are one number without an axis of its own."""
    axes, elem = node.array(1), element(node, 1)
    node.require(elem in (0, TensorProto.INT64), f"axes of the type {TensorProto.DataType.Name(elem)}, not INT64")
    if axes is None or axes.ndim:
        return None
    emit.last(node.node.op_type, node.input(0), emit.constant(axes.reshape(1)), outputs=node.node.output)
    return emit


def _unique(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of all elements, in a row: TVM's further results have the shape of the data otherwise."""
    dims = node.dims(0)
    if dims is None or len(dims) == 1 or node.attribute("axis", None) is not None:
        return None
    flat = emit.reshape(node.input(0), [-1])
    emit.last("Unique", flat, outputs=list(node.node.output), sorted=node.attribute("sorted", 1))
    return emit


def _split(node: NodeView, emit: Emitter) -> Emitter | None:
    """Parts of which one has no element, each by itself: TVM's split has none of these."""
    dims, given = node.dims(0), node.array(1)
    sizes = node.attribute("split", None) if given is None else given.tolist()
    if dims is None or sizes is None or all(sizes):
        return None
    axis = node.attribute("axis", 0) % len(dims)
    ends = np.cumsum([0, *sizes]).tolist()
    node.require(ends[-1] == dims[axis], f"parts of {sizes}, which are not the {dims[axis]} that there are")
    for name, bounds in zip(node.node.output, itertools.pairwise(ends), strict=True):
        if name:
            emit.name(emit.part(node.input(0), axis, *bounds), name)
    return emit


def windows(
    dims: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    outs: Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Flat positions in an image that each window reads: [windows, elements], and which lie inside."""
    grids, inside = np.zeros([1] * 2 * len(dims), np.int64), np.ones([1] * 2 * len(dims), bool)
    for a, size in enumerate(dims):
        at = np.arange(outs[a])[:, None] * strides[a] - pads[a] + np.arange(kernel[a])[None] * dilations[a]
        shape = [1] * 2 * len(dims)
        shape[a], shape[a + len(dims)] = at.shape
        at = at.reshape(shape)
        grids = grids * size + np.clip(at, 0, size - 1)
        inside = inside & (at >= 0) & (at < size)
    count = math.prod(outs)
    return grids.reshape(count, -1), inside.reshape(count, -1)


INDEXING = {
    ("", "CenterCropPad"): _center_crop_pad,
    ("", "Compress"): _compress,
    ("", "EyeLike"): _eye_like,
    ("", "OneHot"): _one_hot,
    ("", "SpaceToDepth"): _space_to_depth,
    ("", "Split"): _split,
    ("", "Squeeze"): _squeeze,
    ("", "Tile"): _tile,
    ("", "TopK"): _top_k,
    ("", "Unique"): _unique,
    ("", "Unsqueeze"): _squeeze,
}
"""By domain and name."""
