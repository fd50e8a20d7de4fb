"""Positions as angles: pairs of each query's and key's elements are turned (Su et al., RoFormer, 2021), as nodes."""

import numpy as np

from ...emit import Emitter, NodeView


def turned(emit: Emitter, value: str, size: int, cosine: str, sine: str, pairs: int, *, interleaved: bool) -> str:
    """Turn the first pairs of the last axis; what is behind them stays.

    Parameters
    ----------
    emit : Emitter
    value : str
        Of four axes, the last of `size` elements.
    size : int
    cosine, sine : str
        Of the angles; their last axis has `pairs` elements, and the others are broadcast to those of the value.
    pairs : int
    interleaved : bool
        Whether the two of a pair are side by side; otherwise the second ones come after all of the first.
    """
    if interleaved:
        both = emit.reshape(emit.part(value, 3, 0, 2 * pairs), [0, 0, 0, pairs, 2])
        first, second = (emit.axes("Squeeze", emit.part(both, 4, n, n + 1), 4) for n in (0, 1))
    else:
        first, second = (emit.part(value, 3, n * pairs, (n + 1) * pairs) for n in (0, 1))
    made = [
        emit("Sub", emit("Mul", first, cosine), emit("Mul", second, sine)),
        emit("Add", emit("Mul", first, sine), emit("Mul", second, cosine)),
    ]
    if interleaved:
        made = [emit.reshape(emit.join([emit.axes("Unsqueeze", part, 4) for part in made], 4), [0, 0, 0, 2 * pairs])]
    return emit.join([*made, emit.part(value, 3, 2 * pairs, size)] if 2 * pairs < size else made, 3)


def angles(emit: Emitter, table: str, places: str, axis: int) -> str:
    """Rows of a table of cosines or sines, with one more axis for the heads."""
    return emit.axes("Unsqueeze", emit("Gather", table, places, axis=0), axis)


def rotary_embedding(node: NodeView, emit: Emitter) -> Emitter | None:
    """Turn [batch, positions, heads x size], or [batch, heads, positions, size]."""
    dims, given, table = node.dims(0), node.dims(1), node.dims(2)
    if dims is None or given is None or table is None:
        return None
    if node.attribute("scale", 1.0) != 1.0:
        node.refuse("has a scale, which ONNX Runtime does not heed", "multiply its input or its result")
    node.require(len(dims) in (3, 4) and len(table) == 2, f"the shapes {dims} and {table} of values and cosines")
    pairs, heads = table[1], node.attribute("num_heads", 0)
    if len(dims) == 4:
        size = dims[3]
    else:
        size = dims[2] // heads if heads > 0 and node.attribute("rotary_embedding_dim", 0) else 2 * pairs
    node.require(
        0 < 2 * pairs <= size and dims[-1] % size == 0,
        f"{pairs} pairs to turn in heads of {size} elements of the shape {dims}",
    )
    positions, value, places = dims[2 if len(dims) == 4 else 1], node.input(0), node.input(1)
    node.require(given == [1] or given == [dims[0], positions], f"positions of the shape {given} for {dims}")
    if given == [1]:
        places = emit("Add", places, emit.constant(np.arange(positions, dtype=np.int64)))
    axis = len(given) - (1 if len(dims) == 4 else 0)  # of the heads
    cosine, sine = (angles(emit, node.input(n), places, axis) for n in (2, 3))
    if len(dims) == 3:
        value = emit.reshape(value, [0, 0, -1, size])
    made = turned(emit, value, size, cosine, sine, pairs, interleaved=bool(node.attribute("interleaved", 0)))
    emit.name(emit.reshape(made, dims) if len(dims) == 3 else made, node.output)
    return emit
