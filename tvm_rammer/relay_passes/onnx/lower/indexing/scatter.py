"""Operators that put elements into places of a tensor."""

import numpy as np
from onnx import TensorProto, helper

from ...emit import Emitter, NodeView


def _tensor_scatter(node: NodeView, emit: Emitter) -> Emitter | None:
    """A cache in which some neighbouring elements of one axis are new, from an index on that each batch has."""
    dims, new = node.dims(0), node.dims(1)
    if dims is None or new is None:
        return None
    rank, axis = len(dims), node.attribute("axis", -2) % len(dims)
    count, size = new[axis], dims[axis]
    places = np.arange(size, dtype=np.int64).reshape([-1] + [1] * (rank - 1 - axis))
    steps = emit.constant(places)
    if node.input(2):
        begin = emit.reshape(emit("Cast", node.input(2), to=TensorProto.INT64), [dims[0], *[1] * (rank - 1)])
        steps = emit("Sub", steps, begin)
    if node.attribute("mode", b"linear") == b"circular":
        whole = emit.constant(np.array(size, np.int64))
        steps = emit("Mod", emit("Add", steps, whole), whole)
    zero, last = (emit.constant(np.array(n, np.int64)) for n in (0, count - 1))
    fresh = emit("And", emit("Not", emit("Less", steps, zero)), emit("Not", emit("Less", last, steps)))
    index = emit("Where", fresh, steps, zero)
    shape = [*new[:axis], size, *new[axis + 1 :]]
    index = emit("Expand", index, emit.constant(np.array(shape, np.int64)))
    value = emit("GatherElements", node.input(1), index, axis=axis)
    emit.name(emit("Where", fresh, value, node.input(0)), node.output)
    return emit


def _scatter_elements(node: NodeView, emit: Emitter) -> Emitter | None:
    """Indices that are fewer than the elements on other axes than the one they are of: with their places written out.

    TVM takes the sizes of the other axes to be those of the data.
    """
    dims, counts = node.dims(0), node.dims(1)
    if dims is None or counts is None or len(counts) != len(dims) or 0 in counts:
        return None
    rank = len(dims)
    axis = node.attribute("axis", 0) % rank
    if all(n == m for a, (n, m) in enumerate(zip(counts, dims, strict=True)) if a != axis):
        return None
    node.require(
        all(n <= m for a, (n, m) in enumerate(zip(counts, dims, strict=True)) if a != axis),
        f"indices of the shape {counts} for the shape {dims}",
    )
    index = emit("Cast", node.input(1), to=TensorProto.INT64)
    below = emit("Less", index, emit.constant(np.array(0, np.int64)))
    index = emit("Where", below, emit("Add", index, emit.constant(np.array(dims[axis], np.int64))), index)
    places = [emit.constant(place[..., None]) for place in np.indices(counts, np.int64)]
    places[axis] = emit.reshape(index, [*counts, 1])
    reduction = node.attribute("reduction", b"none")
    attributes = {} if reduction == b"none" else {"reduction": reduction}
    emit.last(
        "ScatterND", node.input(0), emit.join(places, rank), node.input(2), outputs=node.node.output, **attributes
    )
    return emit


def _scatter_nd(node: NodeView, emit: Emitter) -> Emitter | None:
    """The tensor as it is, where there is no index: TVM divides by how many there are."""
    counts = node.dims(1)
    if counts is None or 0 not in counts[:-1]:
        return None
    emit.name(node.input(0), node.output)
    return emit


def _max_unpool(node: NodeView, emit: Emitter) -> Emitter | None:
    """Maxima back to where they were; with `output_shape` the positions are still those of the smaller image."""
    dims, size = node.dims(0), node.array(2)
    if dims is None or not node.input(2):
        return None
    if size is None:
        node.refuse_at_last("has an output_shape that is computed", "make it a constant (fix_inputs)")
        return None
    kernel = node.attribute("kernel_shape", [])
    strides = node.attribute("strides", [1] * len(kernel))
    pads = node.attribute("pads", [0] * 2 * len(kernel))
    inner = [
        (d - 1) * s - (a + b) + k
        for d, s, a, b, k in zip(dims[2:], strides, pads, pads[len(kernel) :], kernel, strict=False)
    ]
    more = [int(n) - m for n, m in zip(size.tolist()[2:], inner, strict=True)]
    node.require(min(more) >= 0, f"output_shape {size.tolist()}, smaller than {inner}")
    attributes = {a.name: helper.get_attribute_value(a) for a in node.node.attribute}
    value = emit("MaxUnpool", *list(node.node.input)[:2], **attributes)
    if any(more):
        ends = emit.constant(np.array([0] * (len(dims) + 2) + more, np.int64))
        value = emit("Pad", value, ends)
    emit.name(value, node.output)
    return emit


SCATTER = {
    ("", "MaxUnpool"): _max_unpool,
    ("", "ScatterElements"): _scatter_elements,
    ("", "ScatterND"): _scatter_nd,
    ("", "TensorScatter"): _tensor_scatter,
}
"""By domain and name."""
