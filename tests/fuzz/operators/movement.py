"""Operators that move elements."""

import math

import numpy as np
from onnx import helper

from ..generate.builder import Builder


def reshape(b: Builder):
    x = b.source(b.types("Reshape"))
    shape = list(b.of(x))
    factors = [f for d in shape for f in _factors(d)] or [1] * b.integer(0, 2)
    b.rng.shuffle(factors)
    while len(factors) > 1 and (len(factors) > 5 or b.chance(0.6)):
        factors[0:2] = [factors[0] * factors[1]]
    kept = [i for i, d in enumerate(factors) if i < len(shape) and shape[i] == d and d]
    if factors and 0 not in factors and b.chance(0.5):
        factors[b.integer(0, len(factors) - 1)] = -1
    elif kept and b.chance(0.3):
        factors[b.pick(kept)] = 0
    return b.add("Reshape", [x, b.integers(factors)], allowzero=b.pick([None, None, 0]) if 0 not in shape else 1)


def _factors(extent: int) -> list[int]:
    found = []
    for prime in (2, 3, 5, 7):
        while extent and extent % prime == 0:
            found.append(prime)
            extent //= prime
    return found if extent == 1 else [*found, extent]


def flatten(b: Builder):
    x = b.source(b.types("Flatten"), low=0 if b.opset >= 9 else 1)
    rank = len(b.of(x))
    return b.add("Flatten", [x], axis=b.pick([None, b.integer(-rank if b.opset >= 11 else 0, rank)]))


def _with_axes(b: Builder, op, x, axes):
    if b.has(op, "axes"):
        return b.add(op, [x], axes=list(axes))
    return b.add(op, [x, b.integers(axes)])


def squeeze(b: Builder):
    x = b.source(b.types("Squeeze"), low=1, check=lambda s: 1 in s)
    ones = [i for i, d in enumerate(b.of(x)) if d == 1]
    if not ones:
        return []
    chosen = b.rng.sample(ones, b.integer(1, len(ones)))
    if b.opset >= 11 and b.chance(0.3):
        chosen = [a - len(b.of(x)) for a in chosen]
    return b.add("Squeeze", [x]) if b.chance(0.3) else _with_axes(b, "Squeeze", x, chosen)


def unsqueeze(b: Builder):
    x = b.source(b.types("Unsqueeze"), high=4)
    rank, count = len(b.of(x)), b.pick([1, 1, 2])
    axes = b.rng.sample(range(rank + count), count)
    negative = b.opset >= 11 and b.chance(0.3)
    return _with_axes(b, "Unsqueeze", x, [a - rank - count if negative else a for a in axes])


def transpose(b: Builder):
    x = b.source(b.types("Transpose"))
    order = list(range(len(b.of(x))))
    b.rng.shuffle(order)
    return b.add("Transpose", [x], perm=order if b.chance(0.8) else None)


def expand(b: Builder):
    x = b.source(b.types("Expand"), high=4)
    shape = [b.integer(1, 4) if d == 1 else d if b.chance(0.8) else 1 for d in b.of(x)]
    return b.add("Expand", [x, b.integers([b.integer(1, 3)] * b.integer(0, 1) + shape)])


def tile(b: Builder):
    x = b.source(b.types("Tile"))
    return b.add("Tile", [x, b.integers([b.pick([1, 1, 2, 3]) * (not b.chance(0.03)) for _ in b.of(x)])])


def concat(b: Builder):
    x = b.source(b.types("Concat"), low=1)
    axis, shape = b.axis(len(b.of(x))), list(b.of(x))
    parts = [x]
    for _ in range(b.integer(0, 3)):
        if b.chance(0.3):
            parts.append(x)
            continue
        shape[axis] = b.integer(1, 4)
        parts.append(b.source([b.values[x].dtype], shape=shape))
    b.rng.shuffle(parts)
    return b.add("Concat", parts, axis=axis)


def split(b: Builder):
    x = b.source(b.types("Split"), low=1, check=lambda s: max(s) > 1)
    axis = b.axis(len(b.of(x)))
    extent = b.of(x)[axis]
    if b.opset >= 18 and b.chance(0.4):
        count = b.integer(1, max(1, min(3, extent)))
        return b.add("Split", [x], math.ceil(extent / max(1, math.ceil(extent / count))), axis=axis, num_outputs=count)
    cuts = sorted(b.integer(0, extent) for _ in range(b.integer(0, 2)))
    sizes = [j - i for i, j in zip([0, *cuts], [*cuts, extent], strict=True)]
    if b.has("Split", "split"):
        return b.add("Split", [x], len(sizes), axis=axis, split=sizes)
    return b.add("Split", [x, b.integers(sizes)], len(sizes), axis=axis)


def slices(b: Builder):
    x = b.source(b.types("Slice"), low=1)
    axes = b.axes(len(b.of(x)))
    starts, ends, steps = [], [], []
    for extent in (b.of(x)[a] for a in axes):
        step = b.pick([1, 1, 1, 2, 3, -1, -2]) if b.opset >= 10 else 1
        low, high = sorted((b.integer(0, extent), b.integer(0, extent)))
        low, high = (high - 1, low - 1 - extent if b.chance(0.8) else -(2**62)) if step < 0 else (low, high)
        starts.append(low - extent if b.chance(0.2) and 0 <= low < extent else low)
        ends.append(b.pick([high, high, 2**63 - 1, extent + 3]) if step > 0 else high)
        steps.append(step)
    if b.opset < 10:
        return b.add("Slice", [x], starts=starts, ends=ends, axes=axes)
    kind = "int32" if max(map(abs, [*starts, *ends])) < 2**31 and b.chance(0.2) else "int64"
    inputs = [b.constant(np.array(v, kind)) for v in (starts, ends, axes, steps)]
    if axes == list(range(len(axes))) and b.chance(0.5):
        inputs[2] = ""
    count = 4 if any(s != 1 for s in steps) or b.chance(0.5) else 3 if inputs[2] else 2
    return b.add("Slice", [x, *inputs[:count]])


def pad(b: Builder):
    x = b.source(b.types("Pad"), low=1)
    shape, dtype = b.of(x), b.values[x].dtype
    mode = b.pick([None, "constant", "constant", "edge", "reflect", *(["wrap"] * (b.opset >= 19))])
    most = [max(0, min(3, d - 1)) if mode in ("reflect", "wrap", "edge") else 3 for d in shape]
    pads = []
    for extent, limit in zip(shape * 2, most * 2, strict=True):
        cut = max(0, min(1, extent - 2))
        pads.append(b.integer(0, limit) if b.chance(0.7) else -b.integer(0, cut))
    if b.opset < 11:
        return b.add("Pad", [x], mode=mode, pads=pads, value=b.pick([None, 1.5]))
    inputs = [x, b.integers(pads)]
    if mode in (None, "constant") and b.chance(0.5) and dtype != "bfloat16":
        inputs.append(b.constant(b.numbers(dtype, [])))
    if b.opset >= 18 and b.chance(0.3):
        axes = b.axes(len(shape))
        chosen = [pads[a % len(shape) + end] for end in (0, len(shape)) for a in axes]
        inputs = [x, b.integers(chosen), *([*inputs[2:], ""][:1]), b.constant(axes, b.pick(["int64", "int32"]))]
    return b.add("Pad", inputs, mode=mode)


def sequence(b: Builder):
    """A sequence of parts of a tensor, or of some tensors, that is perhaps changed; then something is made of it."""
    if b.opset < 11:
        return []
    x = b.source(["float32", "float32", "int64", "bool"], low=1, high=4, check=lambda s: min(s) > 0)
    shape, before, name = b.of(x), len(b.nodes), f"{b.fresh()}_sequence"
    axis, count = b.axis(len(shape)), b.integer(1, 3)
    if split := b.chance(0.5):
        extent, size = shape[axis], b.integer(1, 3)
        last = [extent - extent // 2, extent // 2] if extent > 1 else [extent]
        parts = b.pick([[], [b.integers(size)], [b.integers(last)]])
        count = -(-extent // size) if parts and b.values[parts[0]].shape == () else len(last) if parts else extent
        how = {"axis": axis, "keepdims": b.pick([None, 0, 1])}
        b.nodes.append(
            helper.make_node("SplitToSequence", [x, *parts], [name], **{k: v for k, v in how.items() if v is not None})
        )
    else:
        items = [x, *(b.parameter(b.values[x].dtype, shape) for _ in range(count - 1))]
        b.nodes.append(helper.make_node("SequenceConstruct", items, [name]))
    for change in b.rng.sample(["SequenceInsert", "SequenceErase"], b.integer(0, 2)):
        if (change == "SequenceErase" and count == 1) or (change == "SequenceInsert" and split):
            continue
        place = [b.integers(b.integer(-count, count - 1))] if b.chance(0.6) else []
        given = [name, x, *place] if change == "SequenceInsert" else [name, *place]
        name, count = f"{name}_{change}", count + (1 if change == "SequenceInsert" else -1)
        b.nodes.append(helper.make_node(change, given, [name]))
    end = b.pick(["ConcatFromSequence", "SequenceAt", "SequenceLength"])
    if end == "ConcatFromSequence":
        made = b.add(end, [name], axis=axis, new_axis=b.pick([None, 0]) if split else b.pick([None, 0, 1]))
    else:
        made = b.add(end, [name, b.integers(b.integer(-count, count - 1))][: 1 + (end == "SequenceAt")])
    if not made:
        del b.nodes[before:]
    return made


def trilu(b: Builder):
    x = b.source(b.types("Trilu"), low=2)
    offset = [b.integers(b.integer(-3, 3))] * b.integer(0, 1)
    return b.add("Trilu", [x, *offset], upper=b.pick([None, 0, 1]))


def reverse_sequence(b: Builder):
    x = b.source(b.types("ReverseSequence"), low=2, check=lambda s: min(s[:2]) > 0)
    batch = b.integer(0, 1)
    lengths = b.numbers("int64", [b.of(x)[batch]], 1, b.of(x)[1 - batch])
    return b.add("ReverseSequence", [x, b.integers(lengths)], batch_axis=batch, time_axis=1 - batch)


TABLE = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Expand": expand,
    "Tile": tile,
    "Concat": concat,
    "Split": split,
    "Slice": slices,
    "Pad": pad,
    "Trilu": trilu,
    "ReverseSequence": reverse_sequence,
    "sequence": sequence,
}
