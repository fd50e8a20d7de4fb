"""Attention as ONNX Runtime's optimisers fuse it, in transformers that are exchanged as files, by other operators.

What is masked out is `mask_filter_value` less than it was, or the least number there is where a position lies ahead.
Caches of keys and values (`past`) are put before the new ones.
"""

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ...emit import Emitter, NodeView, largest
from ..norms.moments import widened
from .grouped import grouped_attention
from .norms import layer_norm
from .rotary import rotary_embedding
from .scores import scaled_product, weighted

_FILTERED = -10000.0
"""`mask_filter_value` by default."""
_EPSILON = 1e-12
"""Of EmbedLayerNormalization by default."""


@dataclass(frozen=True, slots=True)
class _Heads:
    """Queries, keys and values, [batch, heads, positions, size] each; their names, and the sizes.

    Parameters
    ----------
    q, k, v : str
    batch, heads : int
    queries, keys : int
        How many positions there are of each.
    size : int
        Of a query and a key.
    before : int
        So many keys are of earlier positions than the first query's.
    """

    q: str
    k: str
    v: str
    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    before: int


def _attention(node: NodeView, emit: Emitter) -> Emitter | None:
    """One product makes queries, keys and values."""
    dims, weights = node.dims(0), node.dims(1)
    if dims is None or weights is None or _is_beyond(node, 4):
        return None
    product = emit("MatMul", node.input(0), node.input(1))
    if node.input(2):
        product = emit("Add", product, node.input(2))
    return _of_product(node, emit, product, (dims[0], dims[1], weights[1]), mask=3, past=4, bias=5)


def _quantised_attention(node: NodeView, emit: Emitter) -> Emitter | None:
    """The same with a product of bytes."""
    dims, weights = node.dims(0), node.dims(1)
    if dims is None or weights is None or _is_beyond(node, 8):
        return None
    given = [node.input(i) for i in (0, 1, 3, 4, 6, 7, 2)]
    product = emit("MatMulIntegerToFloat", *given, domain="com.microsoft")
    return _of_product(node, emit, product, (dims[0], dims[1], weights[1]), mask=5, past=8, bias=None)


def _is_beyond(node: NodeView, past: int) -> bool:
    """Whether a node asks for what is not written here: one buffer for all keys."""
    if node.attribute("do_rotary", 0):  # no kernel of ONNX Runtime for CPUs has it
        node.refuse("turns positions (do_rotary)", "fuse the model with MultiHeadAttention and RotaryEmbedding")
    known = node.dims(past) is not None or not node.input(past)
    return bool(node.attribute("past_present_share_buffer", 0)) or not known


def _of_product(
    node: NodeView,
    emit: Emitter,
    product: str,
    sizes: tuple[int, int, int],
    *,
    mask: int,
    past: int,
    bias: int | None,
) -> Emitter | None:
    """Attention of the product that holds queries, keys and values side by side.

    Parameters
    ----------
    sizes : tuple of int
        Batch, positions, columns of the product.
    mask, past, bias : int
        Positions of these inputs.
    """
    batch, positions, columns = sizes
    heads = node.attribute("num_heads", 0)
    widths = list(node.attribute("qkv_hidden_sizes", [columns // 3] * 3))
    node.require(
        len(widths) == 3 and sum(widths) == columns and heads > 0 and not any(n % heads for n in widths),
        f"queries, keys and values of {widths} columns for {columns} columns of weights and {heads} heads",
    )
    begins = [0, widths[0], widths[0] + widths[1]]
    parts = [emit.part(product, 2, begin, begin + width) for begin, width in zip(begins, widths, strict=True)]
    q, k, v = (_split(emit, part, heads, width // heads) for part, width in zip(parts, widths, strict=True))
    keys = positions
    if node.input(past):
        before = (node.dims(past) or [0] * 5)[3]
        old = [emit.axes("Squeeze", emit.part(node.input(past), 0, n, n + 1), 0) for n in (0, 1)]
        k, v, keys = emit.join([old[0], k], 2), emit.join([old[1], v], 2), before + positions
    if any(node.node.output[1:2]):
        emit.name(emit.join([emit.axes("Unsqueeze", value, 0) for value in (k, v)], 0), node.node.output[1])
    made = _Heads(q, k, v, batch, heads, positions, keys, widths[0] // heads, keys - positions)
    return _attend(node, emit, made, mask, bias)


def _multi_head_attention(node: NodeView, emit: Emitter) -> Emitter | None:
    """Queries, keys and values are inputs; the latter two perhaps in heads already, or all of them side by side."""
    if any(node.input(i) and node.dims(i) is None for i in (6, 7)) or any(node.input(i) for i in (8, 9)):
        return None
    if any(node.node.output[3:4]):
        node.refuse("has its scores as a result", "leave out its fourth result")
    if (given := _given(node, emit)) is None:
        return None
    values, (q, k, v) = given
    heads = node.attribute("num_heads", 0)
    node.require(heads > 0 and q[2] % heads == 0, f"{heads} heads for queries of {q[2]} elements")
    if node.input(3):
        widths = [q[2], *(d[2] if len(d) == 3 else d[1] * d[3] for d in (k, v))]
        begins = [0, widths[0], widths[0] + widths[1]]
        for n in range(3 if len(k) == 3 else 1):
            values[n] = emit("Add", values[n], emit.part(node.input(3), 0, begins[n], begins[n] + widths[n]))
    made = [
        _split(emit, value, heads, dim[2] // heads) if len(dim) == 3 else value
        for value, dim in zip(values, (q, k, v), strict=True)
    ]
    keys, before = k[1] if len(k) == 3 else k[2], (node.dims(6) or [0] * 4)[2] if node.input(6) else 0
    if node.input(6):
        made[1], made[2] = (emit.join([node.input(5 + n), made[n]], 2) for n in (1, 2))
    for n, name in enumerate(node.node.output[1:3]):
        if name:
            emit.name(made[1 + n], name)
    queries, k_made, v_made = made
    sizes = (q[0], heads, q[1], before + keys, q[2] // heads, before)
    return _attend(node, emit, _Heads(queries, k_made, v_made, *sizes), 4, 5)


def _given(node: NodeView, emit: Emitter) -> tuple[list[str], list[list[int]]] | None:
    """Queries, keys and values, and their shapes; None for forms that are not known.

    Those that are side by side, of the shape [batch, positions, heads, 3 or 2, size], are taken apart.
    """
    values: list[str] = []
    dims: list[list[int]] = []
    for n in range(3):
        own = node.dims(n)
        if own is None or not node.input(n):
            break
        if len(own) == 5:
            width = own[2] * own[4]
            parts = [emit.part(node.input(n), 3, part, part + 1) for part in range(own[3])]
            values += [emit.reshape(part, [own[0], own[1], width]) for part in parts]
            dims += [[own[0], own[1], width]] * own[3]
        else:
            values.append(node.input(n))
            dims.append(own)
    fits = len(dims) == 3 and len(dims[0]) == 3 and len(dims[1]) in (3, 4) and len(dims[1]) == len(dims[2])
    return (values, dims) if fits else None


def _split(emit: Emitter, value: str, heads: int, size: int) -> str:
    """[batch, positions, heads x size] as [batch, heads, positions, size]."""
    return emit("Transpose", emit.reshape(value, [0, 0, heads, size]), perm=[0, 2, 1, 3])


def _attend(node: NodeView, emit: Emitter, heads: _Heads, mask: int, bias: int | None) -> Emitter | None:
    """What each query gets of the values, as the node's first result."""
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(heads.size)
    wide, scores = scaled_product(emit, heads.q, emit("Transpose", heads.k, perm=[0, 1, 3, 2]), scale)
    if bias is not None and node.input(bias):
        scores = emit("Add", scores, widened(emit, node.input(bias)))
    hidden = _hidden(node, wide, mask, heads)
    if hidden is None:
        return None
    if hidden:
        scores = emit("Add", scores, hidden)
    found = weighted(emit, emit("Softmax", scores, axis=-1), heads.v)
    found = emit("Transpose", found, perm=[0, 2, 1, 3])
    emit.name(emit.reshape(found, [heads.batch, heads.queries, -1]), node.output)
    return emit


def _hidden(node: NodeView, emit: Emitter, mask: int, heads: _Heads) -> str | None:
    """What is added to the scores of what a query does not see; empty for nothing, None where it is not understood."""
    least = emit.constant(np.array(-largest(emit.dtype), emit.dtype))
    hidden = ""
    if node.input(mask):
        seen = _seen(node, emit, mask, heads)
        if seen is None:
            return None
        filtered = emit.number(max(node.attribute("mask_filter_value", _FILTERED), -largest(emit.dtype)))
        hidden = emit("Where", seen, emit.number(0.0), filtered)
    if node.attribute("unidirectional", 0):
        ahead = np.tri(heads.queries, heads.keys, heads.before, dtype=bool)
        hidden = emit("Where", emit.constant(ahead), hidden or emit.number(0.0), least)
    return hidden


def _seen(node: NodeView, emit: Emitter, mask: int, heads: _Heads) -> str | None:
    """Which keys a mask lets be seen; it broadcasts to [batch, heads, queries, keys]."""
    dims, batch, keys = node.dims(mask), heads.batch, heads.keys
    value = emit("Cast", node.input(mask), to=TensorProto.INT32)
    if dims == [batch, keys] or dims == [batch, heads.queries, keys]:
        given = emit.reshape(value, [batch, 1, -1, keys])
        return emit("Greater", given, emit.constant(np.array(0, np.int32)))
    if dims not in ([batch], [2 * batch]):
        return None
    positions = emit.constant(np.arange(keys, dtype=np.int32))
    end = emit.reshape(emit.part(value, 0, 0, batch), [batch, 1, 1, 1])
    seen = emit("Less", positions, end)
    if dims == [batch]:
        return seen
    begin = emit.reshape(emit.part(value, 0, batch, 2 * batch), [batch, 1, 1, 1])
    return emit("And", seen, emit("Not", emit("Less", positions, begin)))


def _embed_layer_norm(node: NodeView, emit: Emitter) -> Emitter | None:
    """Words, positions and segments looked up, added and normalised; and how much of each sequence there is."""
    dims, table = node.dims(0), node.dims(2)
    if dims is None or table is None:
        return None
    total = emit("Gather", node.input(2), node.input(0), axis=0)
    positions = node.input(8) or emit.constant(np.arange(dims[1], dtype=np.int64)[None])
    total = emit("Add", total, emit("Gather", node.input(3), positions, axis=0))
    if node.input(1) and node.input(4):
        total = emit("Add", total, emit("Gather", node.input(4), node.input(1), axis=0))
    parameters = [node.input(5), node.input(6)]
    emit.name(layer_norm(emit, total, parameters, node.attribute("epsilon", _EPSILON)), node.output)
    _, length, whole = (*node.node.output, "", "")[:3]
    if length:
        counted = emit.constant(np.zeros(dims[0], np.int32))
        if node.input(7):
            ones = emit("Cast", node.input(7), to=TensorProto.INT32)
            counted = emit.axes("Squeeze", emit.sums(ones, 1), 1)
        emit.name(counted, length)
    if whole:
        emit.name(total, whole)
    return emit


ATTENTION = {
    ("com.microsoft", "Attention"): _attention,
    ("com.microsoft", "EmbedLayerNormalization"): _embed_layer_norm,
    ("com.microsoft", "GroupQueryAttention"): grouped_attention,
    ("com.microsoft", "MultiHeadAttention"): _multi_head_attention,
    ("com.microsoft", "QAttention"): _quantised_attention,
    ("com.microsoft", "RotaryEmbedding"): rotary_embedding,
}
"""By domain and name."""
