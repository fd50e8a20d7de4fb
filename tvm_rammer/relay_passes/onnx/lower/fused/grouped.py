"""Attention whose queries share keys and values in groups, as language models for ONNX Runtime have it, as nodes.

The caches of keys and values have static lengths. How much of them is filled each sequence of a batch says when the
model runs: the new keys and values go behind that, and what comes after them is 0. So may the length of the longest
sequence: then all is computed for the longest one that there can be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ...compile_time import make_constant
from ...emit import Emitter, NodeView
from ..norms.moments import widened
from .norms import root_mean_square
from .rotary import angles, turned
from .scores import scaled_product, weighted

_QUERY, _KEY, _VALUE, _PAST_KEY, _PAST_VALUE, _LAST, _TOTAL, _COSINE, _SINE, _PLACES, _BIAS, _SINK = range(12)
"""The inputs; `_LAST` is how many positions each sequence has, less one."""
_SCALES, _NORMS = (12, 13), (14, 15)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The sizes of a GroupQueryAttention, and its nodes.

    Parameters
    ----------
    node : NodeView
    emit : Emitter
    batch, positions : int
        Of the queries.
    heads, groups : int
        Of the queries, and of the keys and values.
    size : int
        Of a head.
    past : int
        Rows of the caches.
    total : int
        Positions of the longest sequence, the new ones among them; at most so many where they are counted.
    counted : str
        How many these are as a vector of int64, where the model says it when it runs; otherwise empty.
    """

    node: NodeView
    emit: Emitter
    batch: int
    positions: int
    heads: int
    groups: int
    size: int
    past: int
    total: int
    counted: str

    @property
    def begins(self) -> bool:
        """Whether nothing was before: then the caches are not read."""
        return self.positions == self.total

    @property
    def rows(self) -> int:
        """Of the caches that are results."""
        return max(self.past, self.total)

    def heads_of(self, value: str, heads: int) -> str:
        """[batch, positions, heads x size] as [batch, heads, positions, size]."""
        split = self.emit.reshape(value, [self.batch, self.positions, heads, self.size])
        return self.emit("Transpose", split, perm=[0, 2, 1, 3])

    def parts(self) -> list[str]:
        """Queries, keys and values in heads."""
        counts = [self.heads, self.groups, self.groups]
        if self.node.input(_KEY):
            return [self.heads_of(self.node.input(n), count) for n, count in enumerate(counts)]
        packed = self.heads_of(self.node.input(_QUERY), sum(counts))
        ends = np.cumsum(counts).tolist()
        return [self.emit.part(packed, 1, end - count, end) for count, end in zip(counts, ends, strict=True)]

    def before(self) -> str:
        """How many positions each sequence had, [batch, 1, 1, 1]."""
        if self.begins:
            return self.emit.constant(np.zeros((1, 1, 1, 1), np.int64))
        count = self.emit("Cast", self.node.input(_LAST), to=TensorProto.INT64)
        count = self.emit("Add", count, self.emit.constant(np.array(1 - self.positions, np.int64)))
        if self.counted:
            count = self.emit("Max", count, self.emit.constant(np.array(0, np.int64)))
        return self.emit.reshape(count, [self.batch, 1, 1, 1])

    def turning(self, before: str) -> Callable[[str], str]:
        """What turns queries and keys by their positions."""
        node, emit = self.node, self.emit
        steps = emit.constant(np.arange(self.positions, dtype=np.int64))
        if not node.input(_PLACES):
            places = emit("Add", emit.reshape(before, [-1, 1]), steps)
        else:
            places = self.given_places(steps)
        cosine, sine = (angles(emit, node.input(n), places, 1) for n in (_COSINE, _SINE))
        pairs = (node.dims(_COSINE) or [0, 0])[1]
        how = bool(node.attribute("rotary_interleaved", 0))
        return lambda value: turned(emit, value, self.size, cosine, sine, pairs, interleaved=how)

    def given_places(self, steps: str) -> str:
        """Positions of queries that are an input; where nothing was before ONNX Runtime reads the first one alone."""
        emit, given = self.emit, self.node.input(_PLACES)
        if not self.begins and not self.counted:
            return given
        first = emit.part(emit.reshape(given, [-1]), 0, 0, 1)
        places = emit.reshape(emit("Add", first, steps), [1, -1])
        if self.begins:
            return places
        begins = emit("Equal", self.counted, emit.constant(np.array([self.positions], np.int64)))
        return emit("Where", begins, places, given)

    def present(self, cache: str) -> str:
        """A cache as a result: it has as many rows as are needed."""
        if not self.counted or self.begins:
            return cache
        emit, none = self.emit, self.emit.constant(np.zeros(1, np.int64))
        rows = emit("Max", self.counted, emit.constant(np.array([self.past], np.int64)))
        return emit("Slice", cache, none, rows, emit.constant(np.array([2], np.int64)))

    def appended(self, new: str, past: str, before: str) -> str:
        """A cache with new rows behind those that are filled."""
        emit, rows = self.emit, self.rows
        if self.begins:
            return self.longer(new, self.positions)
        places = emit.constant(np.arange(rows, dtype=np.int64).reshape(-1, 1))
        if self.positions > 1:  # of one sequence
            moved = emit("Sub", emit.reshape(places, [-1]), emit.reshape(before, [1]))
            none, last = (emit.constant(np.array(n, np.int64)) for n in (0, self.positions - 1))
            new = emit("Gather", new, emit("Clip", moved, none, last), axis=2)
        end = emit("Add", before, emit.constant(np.array(self.positions, np.int64)))
        behind = emit("Where", emit("Less", places, end), new, emit.number(0.0))
        return emit("Where", emit("Less", places, before), self.longer(past, self.past), behind)

    def longer(self, value: str, rows: int) -> str:
        """Rows of a cache, and zeros up to its length."""
        if rows == self.rows:
            return value
        zeros = np.zeros((self.batch, self.groups, self.rows - rows, self.size), self.emit.dtype)
        return self.emit.join([value, self.emit.constant(zeros)] if rows else [self.emit.constant(zeros)], 2)

    def seen(self, before: str) -> str:
        """Which keys a query sees; it is broadcast to [batch, heads, positions, total]."""
        emit, places = self.emit, self.emit.constant(np.arange(self.total, dtype=np.int64))
        last = emit("Cast", self.node.input(_LAST), to=TensorProto.INT64)
        within = emit("Not", emit("Less", emit.reshape(last, [self.batch, 1, 1, 1]), places))
        if self.counted:
            within = emit("And", within, emit("Less", places, self.counted))
        if not self.node.attribute("causal", 1):
            return within
        own = emit("Add", before, emit.constant(np.arange(self.positions, dtype=np.int64).reshape(-1, 1)))
        seen, window = emit("Not", emit("Less", own, places)), self.node.attribute("local_window_size", -1)
        if window > 0:
            first = emit("Sub", own, emit.constant(np.array(window, np.int64)))
            seen = emit("And", seen, emit("Less", first, places))
        # Queries behind the end of a shorter sequence are of no use, and may see nothing.
        return emit("And", seen, within) if self.begins or self.counted else seen

    def attend(self, q: str, k: str, v: str, before: str) -> str:
        """What each query gets of the values, [batch, positions, heads x size]."""
        node, emit = self.node, self.emit
        each = [self.batch, self.groups, self.heads // self.groups * self.positions, self.size]
        whole = [self.batch, self.heads, self.positions, self.total]
        scale = node.attribute("scale", 0.0) or 1 / math.sqrt(self.size)
        turned = emit("Transpose", k, perm=[0, 1, 3, 2])
        wide, product = scaled_product(emit, emit.reshape(q, each), turned, scale)
        scores = emit.reshape(product, whole)
        if cap := node.attribute("softcap", 0.0):
            curve = emit("Tanh", emit("Div", scores, wide.number(cap)))
            scores = emit("Mul", curve, wide.number(cap))
        if node.input(_BIAS):
            scores = emit("Add", scores, widened(emit, node.input(_BIAS)))
        least = emit.constant(np.array(np.finfo(wide.dtype).min, wide.dtype))
        weights = self.softmax(wide, emit("Where", self.seen(before), scores, least))
        found = weighted(emit, emit.reshape(weights, [*each[:3], self.total]), v)
        found = emit("Transpose", emit.reshape(found, [*whole[:3], self.size]), perm=[0, 2, 1, 3])
        return emit.reshape(found, [self.batch, self.positions, self.heads * self.size])

    def softmax(self, emit: Emitter, scores: str) -> str:
        """Of the scores, and of one more that has no value where the model has such a sink for each head."""
        node = self.node
        if not node.input(_SINK) and not node.attribute("smooth_softmax", 0):
            return emit("Softmax", scores, axis=-1)
        sink = emit.number(0.0)
        if node.input(_SINK):
            sink = emit.reshape(widened(self.emit, node.input(_SINK)), [1, self.heads, 1, 1])
        shape = emit.constant(np.array([self.batch, self.heads, self.positions, 1]))
        joined = emit.join([scores, emit("Expand", sink, shape)], 3)
        return emit.part(emit("Softmax", joined, axis=-1), 3, 0, self.total)


def grouped_attention(node: NodeView, emit: Emitter) -> Emitter | None:
    """Put products, a softmax and choices into the place of a GroupQueryAttention.

    Parameters
    ----------
    node : NodeView
    emit : Emitter

    Returns
    -------
    Emitter or None
        None where shapes, or the length of the longest sequence, are not known yet.

    Raises
    ------
    UnsupportedOperatorError
        Caches of few bits or of a sliding window, scores as a result, a length that is computed beside a bias.
    ModelError
        Sizes that do not fit.
    """
    made = _read(node, emit)
    if made is None:
        return None
    q, k, v = made.parts()
    epsilon = node.attribute("qk_norm_epsilon", 1e-6)
    if all(map(node.input, _NORMS)):
        q, k = (root_mean_square(emit, value, node.input(n), epsilon) for value, n in zip((q, k), _NORMS, strict=True))
    before = made.before()
    if node.attribute("do_rotary", 0):
        turn = made.turning(before)
        q, k = turn(q), turn(k)
    k, v = (made.appended(new, node.input(n), before) for new, n in ((k, _PAST_KEY), (v, _PAST_VALUE)))
    for value, name in zip((k, v), node.node.output[1:3], strict=False):
        if name:
            emit.name(made.present(value), name)
    if made.rows > made.total:
        k, v = (emit.part(value, 2, 0, made.total) for value in (k, v))
    emit.name(made.attend(q, k, v, before), node.output)
    return emit


def _read(node: NodeView, emit: Emitter) -> _Grouped | None:
    """The sizes of a node; None where they are not known yet."""
    if any(node.node.output[3:4]):
        node.refuse("has its scores as a result", "leave out its fourth result")
    if any(map(node.input, _SCALES)) or node.attribute("sliding_window_cache", 0):
        node.refuse("has a cache of few bits, or of a sliding window", "export it with a cache of plain numbers")
    dims, given, total = node.dims(_QUERY), node.dims(_PAST_KEY), node.array(_TOTAL)
    unknown = [n for n in (_KEY, _PAST_KEY, _COSINE) if node.input(n) and node.dims(n) is None]
    if dims is None or unknown:
        return None
    if total is None and node.input(_BIAS):
        node.refuse_at_last("has a length that is computed, and a bias", make_constant([node.input(_TOTAL)]))
    if total is None and (not node.last or node.input(_BIAS)):
        return None
    heads, groups = node.attribute("num_heads", 0), node.attribute("kv_num_heads", 0)
    node.require(heads > 0 and groups > 0 and heads % groups == 0, f"{heads} heads of queries for {groups} of keys")
    columns = heads if node.input(_KEY) else heads + 2 * groups
    node.require(len(dims) == 3 and dims[2] % columns == 0, f"queries of the shape {dims} for {columns} heads")
    size, (batch, positions) = dims[2] // columns, dims[:2]
    for n in (_KEY, _VALUE):
        own, fitting = node.dims(n), [batch, positions, groups * size]
        node.require(not node.input(n) or own in (None, fitting), f"keys or values of the shape {own}, not {fitting}")
    past = given[2] if given is not None and len(given) == 4 else 0
    for n in (_PAST_KEY, _PAST_VALUE):
        own, fitting = node.dims(n), [batch, groups, past, size]
        node.require(not node.input(n) or own in (None, fitting), f"a cache of the shape {own}, not {fitting}")
    most = positions if min(batch, positions) > 1 else past + positions
    length = most if total is None else int(total.item())
    fits = positions == length or (positions < length <= past + positions and (positions == 1 or batch == 1))
    node.require(fits, f"{batch} sequences of up to {length} positions for {positions} new ones, {past} before")
    table = node.dims(_COSINE)
    if node.attribute("do_rotary", 0):
        fits = table is not None and len(table) == 2 and 0 < 2 * table[1] <= size
        node.require(bool(fits), f"cosines of the shape {table} for heads of {size} elements")
    counted = _counted(node, emit, positions, most) if total is None else ""
    return _Grouped(node, emit, batch, positions, heads, groups, size, past, length, counted)


def _counted(node: NodeView, emit: Emitter, least: int, most: int) -> str:
    """The length of the longest sequence, [1]. A Split checks it: no part has less than no elements."""
    low, high = (emit.constant(np.array([n], np.int64)) for n in (least, most))
    total = emit.reshape(emit("Cast", node.input(_TOTAL), to=TensorProto.INT64), [1])
    sizes = emit.join([emit("Sub", total, low), emit("Sub", high, total)], 0)
    names = [f"{emit.prefix}{which}" for which in ("earlier", "lacking")]
    emit.last("Split", emit.constant(np.zeros(most - least, np.int64)), sizes, outputs=names, axis=0)
    return emit("Add", emit("Shape", emit.reshape(names[0], [-1])), low)
