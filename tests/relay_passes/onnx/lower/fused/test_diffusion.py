"""Layers of diffusion models as ONNX Runtime fuses them for GPUs: for a CPU it has none, but what they are made of."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, tensor, value, with_contrib
from .test_operators import microsoft

SHAPE, GROUPS = (2, 4, 3, 6), 3
HALF = TensorProto.FLOAT16


def plain(x, activation):
    """By ONNX's own norm of groups, with channels second."""
    nodes = [node("GroupNormalization", ["x", "g", "b"], ["n"], num_groups=GROUPS, epsilon=1e-4)]
    if activation:
        nodes += [node("Sigmoid", ["n"], ["c"]), node("Mul", ["n", "c"], ["y"])]
    else:
        nodes.append(node("Identity", ["n"], ["y"]))
    proto = model(nodes, [value("x", x.shape)], ["y"], parameters(), opset=21, ir=10)
    return by_onnxruntime(proto, x=x)[0]


def parameters():
    return [tensor(name, random(6, seed=n)) for n, name in enumerate("gb", 1)]


def second(x):
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("skip", [None, SHAPE, (2, 1, 1, 6), (2, 6)])
def test_norms_of_groups(skip, dtype, activation, last, run):
    kind = "GroupNorm" if skip is None else "SkipGroupNorm"
    how = {"groups": GROUPS, "activation": activation, "channels_last": last, "epsilon": 1e-4}
    x = (300 * random(*SHAPE, seed=3)).astype(dtype)
    feeds, constants = {"x": x if last else second(x)}, parameters()
    total = x
    if skip is not None:
        other, bias = ((100 * random(*shape, seed=4)).astype(dtype) for shape in (skip, (6,)))
        feeds["s"] = other if last or len(skip) == 2 else second(other)
        constants.append(tensor("bias", bias))
        total = x + other.reshape(other.shape if len(skip) == 4 else (2, 1, 1, 6)) + bias
    outputs = ["y"] if skip is None else ["y", "sum"]
    elem = TensorProto.FLOAT if dtype == "float32" else HALF
    nodes = [microsoft(kind, ["x", "g", "b", *([] if skip is None else ["s", "bias"])], outputs, **how)]
    given = [value(name, array.shape, elem) for name, array in feeds.items()]
    got = run(
        load_model(with_contrib(model(nodes, given, [value(n, None, elem) for n in outputs], constants))),
        *feeds.values(),
    )
    got = got if isinstance(got, list) else [got]
    expected = [plain(second(total.astype("float32")), activation), *([] if skip is None else [second(total)])]
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == dtype
        tolerance = 1e-5 if dtype == "float32" else 2e-2
        np.testing.assert_allclose(second(ours) if last else ours, theirs, rtol=tolerance, atol=tolerance)


def test_groups_that_do_not_divide_the_channels_are_refused():
    nodes = [microsoft("GroupNorm", ["x", "g", "b"], ["y"], groups=4, activation=0)]
    with pytest.raises(ModelError, match="4 groups of 6 channels"):
        load_model(with_contrib(model(nodes, [value("x", SHAPE)], ["y"], parameters())))


def test_biases(run):
    nodes = [microsoft("BiasAdd", ["x", "b", "s"], ["a"]), microsoft("BiasSplitGelu", ["a", "b"], ["y"])]
    given = [value("x", [2, 5, 6]), value("s", [2, 5, 6])]
    constants = parameters()[1:]
    feeds = {"x": random(2, 5, 6), "s": random(2, 5, 6, seed=5)}
    got = run(load_model(with_contrib(model(nodes, given, ["y"], constants))), *feeds.values())
    same = [
        node("Sum", ["x", "b", "s", "b"], ["t"]), node("Split", ["t"], ["l", "r"], axis=2, num_outputs=2),
        node("Gelu", ["r"], ["c"]), node("Mul", ["l", "c"], ["y"]),
    ]  # fmt: skip
    (expected,) = by_onnxruntime(model(same, given, ["y"], constants, opset=20, ir=9), **feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
