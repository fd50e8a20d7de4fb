"""Layers with channels last, as ONNX Runtime saves quantised models at its highest level."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, rng, tensor, value, with_contrib

KINDS = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}


def close_bytes(run, proto, x):
    """Equal, but for a byte that is rounded the other way now and then."""
    got, (expected,) = run(load_model(proto), x), by_onnxruntime(proto, x=x)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    off = np.abs(got.astype(int) - expected)
    assert off.max() <= 1 and (off > 0).mean() < 0.05


def integers(dtype, *shape):
    bounds = np.iinfo(dtype)
    return rng(1).integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)


def scales(dtype):
    """Of a byte before and after a layer."""
    zero = np.array(7, dtype)
    return [tensor("xs", np.float32(0.02)), tensor("xz", zero), tensor("ys", np.float32(0.03)), tensor("yz", zero)]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("group", [1, 2])
def test_convolutions(group, dtype, last, run):
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    constants = [
        *scales(dtype),
        tensor("w", integers("int8", 6, 4 // group, 3, 3)), tensor("ws", np.linspace(0.01, 0.02, 6).astype("float32")),
        tensor("wz", np.zeros(6, "int8")), tensor("b", np.arange(6, dtype="int32")),
    ]  # fmt: skip
    how = {"pads": [1, 1, 1, 1], "strides": [2, 1], "group": group, "channels_last": last}
    only = node("QLinearConv", names, ["y"], domain="com.microsoft", **how)
    shape = [2, 6, 5, 4] if last else [2, 4, 6, 5]
    proto = model([only], [value("x", shape, KINDS[dtype])], [value("y", None, KINDS[dtype])], constants)
    close_bytes(run, with_contrib(proto), integers(dtype, *shape))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("QLinearAveragePool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}),
        ("QLinearGlobalAveragePool", {}),
        ("NhwcMaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ],
)
def test_pools(kind, how, dtype, run):
    if kind == "NhwcMaxPool":
        names, constants = ["x"], []
    else:
        names, constants, how = ["x", "xs", "xz", "ys", "yz"], scales(dtype), how | {"channels_last": 1}
    only = node(kind, names, ["y"], domain="com.microsoft", **how)
    proto = model([only], [value("x", [2, 6, 5, 4], KINDS[dtype])], [value("y", None, KINDS[dtype])], constants)
    close_bytes(run, with_contrib(proto), integers(dtype, 2, 6, 5, 4))


@pytest.mark.parametrize("kind", ["NhwcConv", "NhwcFusedConv"])
def test_convolutions_of_other_numbers(kind, run):
    """ONNX Runtime has them on some processors alone: transpositions around a convolution mean the same."""
    fused = kind == "NhwcFusedConv"
    how = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    constants = [tensor("w", random(6, 4, 3, 3)), tensor("b", random(6, seed=1))]
    feeds = {"x": random(2, 5, 4, 4, seed=2)} | ({"z": random(2, 5, 4, 6, seed=3)} if fused else {})
    given = [value(name, array.shape) for name, array in feeds.items()]
    only = node(
        kind, [*"xwb", *"z" * fused], ["y"], domain="com.microsoft", **how, **({"activation": "Relu"} if fused else {})
    )
    plain = [
        node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w", "b"], ["c"], **how),
        node("Transpose", ["c"], ["l"], perm=[0, 2, 3, 1]),
        *([node("Add", ["l", "z"], ["s"]), node("Relu", ["s"], ["y"])] if fused else [node("Identity", ["l"], ["y"])]),
    ]  # fmt: skip
    (expected,) = by_onnxruntime(model(plain, given, ["y"], constants), **feeds)
    got = run(load_model(with_contrib(model([only], given, ["y"], constants))), *feeds.values())
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
