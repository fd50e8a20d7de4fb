"""Pools in three dimensions become two in two dimensions, where windows reach along depth and another axis."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.passes.split_pools import SplitPools

from ..models import by_onnxruntime, model, node, op_names, random, value

SHAPE = (2, 3, 7, 9, 11)
SPLIT = [
    {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]},
    {"kernel_shape": [3, 3, 2], "strides": [2, 1, 2], "pads": [1, 1, 0, 1, 0, 1]},
    {"kernel_shape": [3, 2, 3], "strides": [2, 2, 3], "pads": [1, 0, 1, 1, 1, 0], "ceil_mode": 1},
    {"kernel_shape": [2, 1, 2]},
    {"kernel_shape": [3, 3, 3], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 2, 2], "dilations": [2, 1, 3]},
]
WHOLE = [{"kernel_shape": [1, 3, 3], "strides": [2, 1, 1]}, {"kernel_shape": [3, 1, 1]}]
KINDS = [("MaxPool", {}), ("AveragePool", {"count_include_pad": 0}), ("AveragePool", {"count_include_pad": 1})]


def pool(kind: str, **attributes: object):
    return model([node(kind, ["x"], ["y"], **attributes)], [value("x", list(SHAPE))], ["y"], opset=19)


@pytest.mark.parametrize("window", SPLIT, ids=str)
@pytest.mark.parametrize(("kind", "padding"), KINDS, ids=["max", "mean", "mean with padding"])
def test_planes_and_then_depth_give_the_same(kind, padding, window):
    proto, x = pool(kind, **window, **padding), random(*SHAPE)
    names = [name for name in op_names(SplitPools()(load_model(proto))) if "pool" in name]
    assert len(names) == 2 and all(name.endswith("pool2d") for name in names)
    np.testing.assert_allclose(tvm_rammer.compile(proto)(x), by_onnxruntime(proto, x=x)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", WHOLE, ids=str)
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_windows_of_fewer_axes_stay(kind, window):
    mod = load_model(pool(kind, **window))
    assert SplitPools()(mod).same_as(mod)


def test_means_of_half_precision_are_rounded_once():
    proto = model(
        [node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2, 2])],
        [value("x", list(SHAPE), TensorProto.FLOAT16)],
        ["y"],
        opset=19,
    )
    mod = load_model(proto)
    assert SplitPools()(mod).same_as(mod)


def test_a_number_that_is_none_spoils_its_windows_alone():
    x = random(*SHAPE)
    x[0, 0, 3, 4, 5] = np.nan
    proto = pool("MaxPool", kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    got = tvm_rammer.compile(proto)(x)
    assert np.isnan(got).sum() == 1 and np.isnan(got[0, 0, 1, 2, 2])
