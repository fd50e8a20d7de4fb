"""Normalisations, losses, attention."""

import numpy as np

from ..generate.builder import Builder


def _epsilon(b: Builder):
    return b.pick([None, None, 1e-3, 1e-2])


def batch_norm(b: Builder):
    x = b.source(["float32", "float32", "float64"], low=2, check=lambda s: min(s) > 0)
    dtype, channels = b.values[x].dtype, b.of(x)[1]
    scale, bias, mean = (b.parameter(dtype, [channels]) for _ in range(3))
    inputs = [x, scale, bias, mean, b.parameter(dtype, [channels], 0.1, 2)]
    training = b.opset >= 14 and b.chance(0.15)
    return b.add(
        "BatchNormalization", inputs, 3 if training else 1, epsilon=_epsilon(b), training_mode=training or None
    )


def instance_norm(b: Builder):
    x = b.source(["float32"], low=3, check=lambda s: min(s) > 0)
    pair = [b.parameter("float32", [b.of(x)[1]]) for _ in range(2)]
    return b.add("InstanceNormalization", [x, *pair], epsilon=_epsilon(b))


def layer_norm(b: Builder):
    x = b.source(["float32", "float32", "float64", "float16"], low=1, check=lambda s: min(s) > 0)
    axis = b.axis(len(b.of(x)))
    extra = [b.parameter(b.values[x].dtype, b.of(x)[axis:]) for _ in range(b.integer(1, 2))]
    return b.add("LayerNormalization", [x, *extra], b.pick([1, 1, 2, 3]), axis=axis, epsilon=_epsilon(b))


def rms_norm(b: Builder):
    x = b.source(["float32", "float16"], low=1, check=lambda s: min(s) > 0)
    axis = b.axis(len(b.of(x)))
    return b.add(
        "RMSNormalization", [x, b.parameter(b.values[x].dtype, b.of(x)[axis:])], axis=axis, epsilon=_epsilon(b)
    )


def group_norm(b: Builder):
    if b.opset < 21:
        return []  # the first one was withdrawn
    x = b.source(["float32"], low=3, check=lambda s: min(s) > 0)
    channels = b.of(x)[1]
    groups = b.pick([d for d in range(1, channels + 1) if channels % d == 0])
    pair = [b.parameter("float32", [channels]) for _ in range(2)]
    return b.add("GroupNormalization", [x, *pair], num_groups=groups, epsilon=_epsilon(b), told=[b.values[x]])


def lp_norm(b: Builder):
    x = b.source(["float32", "float64"], low=1)
    return b.add("LpNormalization", [x], p=b.pick([None, 1, 2]), axis=b.pick([None, b.axis(len(b.of(x)))]))


def mean_variance(b: Builder):
    x = b.source(["float32"], low=4, high=4)
    return b.add("MeanVarianceNormalization", [x], axes=b.pick([None, [0, 2, 3], [2, 3], [1]]))


def lrn(b: Builder):
    x = b.source(["float32"], low=4, high=4)
    return b.add(
        "LRN",
        [x],
        size=b.pick([1, 3, 5]),
        alpha=b.pick([None, 0.5]),
        beta=b.pick([None, 0.5]),
        bias=b.pick([None, 2.0]),
    )


def dropout(b: Builder):
    x = b.source(b.types("Dropout"))
    if b.opset < 12:
        return b.add("Dropout", [x], b.integer(1, 2), ratio=b.pick([None, 0.3]))
    ratio = b.constant(np.float32(b.pick([0.0, 0.3])))
    inputs = b.pick([[x], [x, ratio], [x, ratio, b.constant(np.array(False))]])
    return b.add("Dropout", inputs, b.integer(1, 2))


def _loss(op):
    def make(b: Builder):
        scores = b.source(["float32"], low=2, high=4, check=lambda s: min(s) > 0)
        n, classes, *rest = b.of(scores)
        labels = b.input(b.numbers("int64", [n, *rest], 0, classes - 1))
        inputs = [scores, labels] + [b.parameter("float32", [classes], 0.1, 1)] * b.integer(0, 1)
        how = {"reduction": b.pick([None, "none", "sum", "mean"]), "ignore_index": b.pick([None, None, 0])}
        return b.add(op, inputs, 2 if op == "SoftmaxCrossEntropyLoss" and b.chance(0.3) else 1, **how)

    return make


def attention(b: Builder):
    n, heads, q, k, d = (b.integer(1, hi) for hi in (2, 3, 5, 6, 8))
    shared = b.pick([h for h in range(1, heads + 1) if heads % h == 0])
    inputs = [b.source(["float32"], shape=s) for s in ([n, heads, q, d], [n, shared, k, d], [n, shared, k, d])]
    how = {"is_causal": b.pick([None, 1]), "scale": b.pick([None, 0.5]), "softcap": b.pick([None, None, 2.0])}
    if b.chance(0.4):
        inputs.append(b.input(b.numbers(b.pick(["bool", "float32"]), b.pick([[q, k], [n, 1, q, k], [n, heads, q, k]]))))
    return b.add("Attention", inputs, **how)


def rotary(b: Builder):
    n, heads, length, half = b.integer(1, 2), b.integer(1, 3), b.integer(1, 5), b.integer(1, 4)
    tables = [b.parameter("float32", [8, half]) for _ in range(2)]
    places = b.input(b.numbers("int64", [n, length], 0, 7))
    x = b.source(["float32"], shape=[n, heads, length, 2 * half])
    return b.add("RotaryEmbedding", [x, *tables, places], interleaved=b.pick([None, 0, 1]))


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
