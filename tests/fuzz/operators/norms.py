"""Normalisations, losses, attention."""

import numpy as np

from ..generate.builder import Builder

_NORMED = ("float32", "float32", "float64", "float16")


def _epsilon(b: Builder):
    return b.pick([None, None, 1e-3, 1e-2])


def _spread(b: Builder, shape):
    """The shape, or one that is broadcast to it."""
    return [1 if b.chance(0.5) else d for d in shape] if b.chance(0.2) else list(shape)


def batch_norm(b: Builder):
    x = b.source(["float32", "float32", "float64", "float16"], low=2, check=lambda s: min(s) > 0)
    dtype, channels = b.values[x].dtype, b.of(x)[1]
    scale, bias, mean = (b.parameter(dtype, [channels]) for _ in range(3))
    inputs = [x, scale, bias, mean, b.parameter(dtype, [channels], 0.1, 2)]
    training = b.opset >= 14 and b.chance(0.15)
    return b.add(
        "BatchNormalization", inputs, 3 if training else 1, epsilon=_epsilon(b), training_mode=training or None
    )


def instance_norm(b: Builder):
    x = b.source(_NORMED, low=3, check=lambda s: min(s) > 0)
    pair = [b.parameter(b.values[x].dtype, [b.of(x)[1]]) for _ in range(2)]
    return b.add("InstanceNormalization", [x, *pair], epsilon=_epsilon(b))


def layer_norm(b: Builder):
    x = b.source(["float32", "float32", "float64", "float16"], low=1, check=lambda s: min(s) > 0)
    axis = b.axis(len(b.of(x)))
    extra = [b.parameter(b.values[x].dtype, _spread(b, b.of(x)[axis:])) for _ in range(b.integer(1, 2))]
    return b.add("LayerNormalization", [x, *extra], b.pick([1, 1, 2, 3]), axis=axis, epsilon=_epsilon(b))


def rms_norm(b: Builder):
    x = b.source(["float32", "float16"], low=1, check=lambda s: min(s) > 0)
    axis = b.axis(len(b.of(x)))
    scale = b.parameter(b.values[x].dtype, _spread(b, b.of(x)[axis:]))
    return b.add("RMSNormalization", [x, scale], axis=axis, epsilon=_epsilon(b))


def group_norm(b: Builder):
    if b.opset < 21:
        return []  # the first one was withdrawn
    x = b.source(["float32", "float16"], low=3, check=lambda s: min(s) > 0)
    channels = b.of(x)[1]
    groups = b.pick([d for d in range(1, channels + 1) if channels % d == 0])
    pair = [b.parameter(b.values[x].dtype, [channels]) for _ in range(2)]
    return b.add("GroupNormalization", [x, *pair], num_groups=groups, epsilon=_epsilon(b), told=[b.values[x]])


def lp_norm(b: Builder):
    x = b.source(_NORMED, low=1)
    return b.add("LpNormalization", [x], p=b.pick([None, 1, 2]), axis=b.pick([None, b.axis(len(b.of(x)))]))


def mean_variance(b: Builder):
    x = b.source(_NORMED, low=2)
    axes = b.axes(len(b.of(x))) if len(b.of(x)) != 4 or b.chance(0.7) else None
    return b.add("MeanVarianceNormalization", [x], axes=axes)


def lrn(b: Builder):
    x = b.source(["float32"], low=4, high=4, check=lambda s: min(s) > 0)
    return b.add(
        "LRN",
        [x],
        size=b.pick([1, 2, 3, 5]),
        alpha=b.pick([None, 0.5]),
        beta=b.pick([None, 0.5]),
        bias=b.pick([None, 2.0]),
    )


def dropout(b: Builder):
    x = b.source(b.types("Dropout"))
    if b.opset < 12:
        return b.add("Dropout", [x], b.integer(1, 2), ratio=b.pick([None, 0.3]))
    ratio = b.constant(np.float32(b.pick([0.0, 0.3])))
    inputs = b.pick([[x], [x, ratio], [x, ratio, b.constant(np.array(False))], [x, "", b.constant(np.array(False))]])
    return b.add("Dropout", inputs, b.integer(1, 2))


def _loss(op):
    def make(b: Builder):
        scores = b.source(["float32", "float32", "float64"], low=2, high=5, check=lambda s: min(s) > 0)
        n, classes, *rest = b.of(scores)
        ignored = b.pick([None, None, 0, -1, classes])
        numbers = b.numbers(b.pick(["int64", "int64", "int32"]), [n, *rest], 0, classes - 1)
        if ignored is not None and b.chance(0.5):
            numbers.reshape(-1)[0] = ignored
        labels = b.input(numbers)
        inputs = [scores, labels] + [b.parameter(b.values[scores].dtype, [classes], 0.1, 1)] * b.integer(0, 1)
        how = {"reduction": b.pick([None, "none", "sum", "mean"]), "ignore_index": ignored}
        return b.add(op, inputs, 2 if op == "SoftmaxCrossEntropyLoss" and b.chance(0.3) else 1, **how)

    return make


def attention(b: Builder):
    """In heads or not, with a cache of earlier keys and values or not; the scores are a result, too."""
    n, heads, q, k, d, width = (b.integer(1, hi) for hi in (2, 3, 5, 6, 8, 8))
    shared = b.pick([h for h in range(1, heads + 1) if heads % h == 0])
    dtype, past, apart = (
        b.pick(["float32", "float32", "float16"]),
        b.chance(0.3) * b.integer(0, 4),
        b.chance(0.7),
    )
    shapes = [[n, heads, q, d], [n, shared, k, d], [n, shared, k, width]]
    if not apart:
        shapes = [[n, length, of * size] for n, of, length, size in shapes]
    inputs = [b.source([dtype], shape=shape) for shape in shapes]
    how = {
        "is_causal": b.pick([None, 1]),
        "scale": b.pick([None, 0.5]),
        "softcap": b.pick([None, None, 2.0]),
        "q_num_heads": None if apart else heads,
        "kv_num_heads": None if apart else shared,
        "qk_matmul_output_mode": b.pick([None, None, 0, 1, 2, 3]),
    }
    whole = [n, heads, q, k + past]
    if b.chance(0.4):
        shape = b.pick([whole[2:], [n, 1, *whole[2:]], whole])
        inputs.append(b.input(b.numbers(b.pick(["bool", dtype]), shape)))
    if past:
        cache = [b.parameter(dtype, [n, shared, past, size]) for size in (d, width)]
        inputs += [*([""] * (4 - len(inputs))), *cache]
    elif b.has("Attention", "q_num_heads") and b.opset >= 24 and b.chance(0.2):
        lengths = b.integers(b.numbers("int64", [n], 1, k))
        inputs += [*([""] * (6 - len(inputs))), lengths]
    return b.add("Attention", inputs, b.pick([1, 1, 3, 4]) if past else 1, **how)


def rotary(b: Builder):
    """With positions, or a row of the tables for each of them; all of a head turned or a part of it."""
    n, heads, length, half = b.integer(1, 2), b.integer(1, 3), b.integer(1, 5), b.integer(1, 4)
    part, dtype, given = b.integer(1, half), b.pick(["float32", "float32", "float16"]), b.chance(0.7)
    tables = [b.parameter(dtype, [8, part] if given else [n, length, part]) for _ in range(2)]
    places = [b.input(b.numbers("int64", [n, length], 0, 7))] * given
    apart = b.chance(0.7)
    x = b.source([dtype], shape=[n, heads, length, 2 * half] if apart else [n, length, heads * 2 * half])
    how = {
        "interleaved": b.pick([None, 0, 1]),
        "num_heads": heads if not apart else None,
        "rotary_embedding_dim": 2 * part if part < half else None,
    }
    return b.add("RotaryEmbedding", [x, *tables, *places], **how)


TABLE = {
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "GroupNormalization": group_norm,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance,
    "LRN": lrn,
    "Dropout": dropout,
    "NegativeLogLikelihoodLoss": _loss("NegativeLogLikelihoodLoss"),
    "SoftmaxCrossEntropyLoss": _loss("SoftmaxCrossEntropyLoss"),
    "Attention": attention,
    "RotaryEmbedding": rotary,
}
