"""Gather, scatter, and operators whose shapes depend on data."""

import numpy as np

from ..generate.builder import Builder


def _indices(b: Builder, shape, extent, unique=False):
    """In bounds; negative ones too, constant or not."""
    if unique:
        values = np.array(b.rng.sample(range(extent), int(np.prod(shape)))).reshape(shape)
    else:
        values = b.numbers("int64", shape, 0, extent - 1)
    if b.opset >= 11 and b.chance(0.3):
        values = values - extent * (b.numbers("int64", shape, 0, 1))
    values = values.astype(b.pick(["int64", "int64", "int32"]))
    return b.constant(values) if b.chance(0.5) else b.input(values)


def _whole(shape):
    return min(shape, default=1) > 0


def gather(b: Builder):
    x = b.source(b.types("Gather"), low=1, check=_whole)
    axis = b.axis(len(b.of(x)))
    return b.add(
        "Gather", [x, _indices(b, b.shape(0, 2), b.of(x)[axis])], axis=b.pick([None, axis]) if axis == 0 else axis
    )


def gather_elements(b: Builder):
    x = b.source(b.types("GatherElements"), low=1, check=_whole)
    axis, shape = b.axis(len(b.of(x))), list(b.of(x))
    extent, shape[axis] = shape[axis], b.integer(1, 4)
    return b.add("GatherElements", [x, _indices(b, shape, extent)], axis=axis)


def gather_nd(b: Builder):
    x = b.source(b.types("GatherND"), low=1, check=_whole)
    shape = b.of(x)
    batch = b.integer(0, min(2, len(shape) - 1)) if b.opset >= 12 else 0
    depth = b.integer(1, len(shape) - batch)
    places = np.stack([b.numbers("int64", [*shape[:batch], 3], 0, d - 1) for d in shape[batch : batch + depth]], -1)
    if b.opset >= 12 and b.chance(0.3):
        places -= np.array(shape[batch : batch + depth]) * b.numbers("int64", places.shape, 0, 1)
    index = b.constant(places) if b.chance(0.5) else b.input(places)
    return b.add("GatherND", [x, index], batch_dims=batch or None)


def scatter_elements(op):
    def make(b: Builder):
        x = b.source(b.types(op if b.opset >= 11 else "Scatter"), low=1, check=_whole)
        axis, shape = b.axis(len(b.of(x))), list(b.of(x))
        extent = shape[axis]
        shape = [b.integer(1, d) for d in shape]
        kinds = [None, None, "none", *(["add", "mul"] * (b.opset >= 16)), *(["max", "min"] * (b.opset >= 18))]
        kind = b.pick(kinds) if op == "ScatterElements" else None
        if kind in (None, "none"):
            lead = b.rng.sample(range(extent), shape[axis])
            places = np.moveaxis(np.broadcast_to(np.array(lead), [*np.delete(shape, axis), shape[axis]]), -1, axis)
            index = b.integers(places) if b.chance(0.5) else b.input(places.astype("int64"))
        else:
            index = _indices(b, shape, extent)
        updates = b.parameter(b.values[x].dtype, shape)
        if op == "ScatterElements" and b.opset < 11:
            return b.add("Scatter", [x, index, updates], axis=axis)
        return b.add(op, [x, index, updates], axis=axis, reduction=kind)

    return make


def scatter_nd(b: Builder):
    x = b.source(b.types("ScatterND"), low=1, check=_whole)
    shape = b.of(x)
    depth = b.integer(1, len(shape))
    count = b.integer(1, min(3, int(np.prod(shape[:depth]))))
    flat = b.rng.sample(range(int(np.prod(shape[:depth]))), count)
    places = np.stack(np.unravel_index(np.array(flat), shape[:depth]), -1)
    index = b.integers(places) if b.chance(0.5) else b.input(places.astype("int64"))
    kinds = [None, None, *(["add", "mul"] * (b.opset >= 16)), *(["max", "min"] * (b.opset >= 18))]
    updates = b.parameter(b.values[x].dtype, [count, *shape[depth:]])
    return b.add("ScatterND", [x, index, updates], reduction=b.pick(kinds))


def one_hot(b: Builder):
    depth = b.integer(1, 6)
    dtype = b.pick(["int64", "int32", "float32"])
    index = b.input(b.numbers("int64", b.shape(0, 2), -depth - 1, depth).astype(dtype))
    ends = b.constant(b.numbers(b.pick(["float32", "int64", "int32", "float64"]), [2]))
    return b.add("OneHot", [index, b.integers(b.pick([depth, [depth]])), ends], axis=b.pick([None, 0, -1]))


def compress(b: Builder):
    x = b.source(b.types("Compress"), low=1, check=_whole)
    axis = b.axis(len(b.of(x))) if b.chance(0.8) else None
    extent = b.of(x)[axis] if axis is not None else int(np.prod(b.of(x)))
    mask = b.numbers("bool", [extent if b.chance(0.8) else b.integer(1, extent)])
    return b.add("Compress", [x, b.constant(mask) if b.chance(0.6) else b.input(mask)], axis=axis)


def non_zero(b: Builder):
    return b.add("NonZero", [b.source(b.types("NonZero"), low=1)])


def unique(b: Builder):
    x = b.source(b.types("Unique"), low=1, check=_whole)
    axis = b.pick([None, b.axis(len(b.of(x)))])
    return b.add("Unique", [x], b.integer(1, 4), axis=axis, sorted=b.pick([None, 0, 1]))


def non_max_suppression(b: Builder):
    batch, boxes, classes = b.integer(1, 2), b.integer(1, 8), b.integer(1, 3)
    corners = b.numbers("float32", [batch, boxes, 4], 0, 1)
    corners[..., 2:] += corners[..., :2]
    scores = b.source(["float32"], shape=[batch, classes, boxes])
    limits = [b.integers([b.integer(0, 4)]), *(b.constant(np.float32([t])) for t in (0.5, 0.1))]
    return b.add(
        "NonMaxSuppression",
        [b.input(corners), scores, *limits[: b.integer(0, 3)]],
        center_point_box=b.pick([None, 0, 1]),
    )


def tensor_scatter(b: Builder):
    cache = b.source(["float32", "float32", "int64", "float16"], low=3, high=4, check=lambda s: min(s) > 1)
    shape = list(b.of(cache))
    axis = b.pick([None, b.integer(1, len(shape) - 1)])
    along = len(shape) - 2 if axis is None else axis
    longest, mode = shape[along], b.pick([None, "linear", "circular"])
    shape[along] = b.integer(1, longest)
    last = longest - (shape[along] if mode != "circular" else 1)
    start = [b.integers(b.numbers("int64", [shape[0]], 0, last))] if b.chance(0.8) else []
    updates = b.parameter(b.values[cache].dtype, shape)
    return b.add("TensorScatter", [cache, updates, *start], mode=mode, axis=axis)


TABLE = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements("ScatterElements"),
    "ScatterND": scatter_nd,
    "OneHot": one_hot,
    "Compress": compress,
    "NonZero": non_zero,
    "Unique": unique,
    "NonMaxSuppression": non_max_suppression,
    "TensorScatter": tensor_scatter,
}
