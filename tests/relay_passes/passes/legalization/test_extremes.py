"""Pools, extremes and rectifiers of infinities and NaN."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

import tvm_rammer
from tests.functions import TARGET, relax_module
from tests.hostile import by_onnxruntime, model, results
from tvm_rammer.relay_passes.passes.legalization import exact_legalization

INF = np.inf


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_the_largest_of_a_window_of_infinities(rank):
    x = np.full([1, 2] + [4] * (rank - 2), -INF, "float32")
    x[0, 1, 0] = 1
    space = rank - 2
    nodes = [
        ("MaxPool", ["x"], {"kernel_shape": [2] * space, "strides": [2] * space}),
        ("MaxPool", ["x"], {"kernel_shape": [3] * space, "pads": [1] * 2 * space}),
    ]
    # ONNX Runtime says so of some ranks only.
    halves, all_padded = results(model(nodes, {"x": x}), {"x": x})
    want = np.full(halves.shape, -INF, "float32")
    want[(0, 1, 0, *[slice(None)] * (space - 1))] = 1
    np.testing.assert_array_equal(halves, want)
    want = np.full(all_padded.shape, -INF, "float32")
    want[0, 1, :2] = 1
    np.testing.assert_array_equal(all_padded, want)


def test_equal_pools_share_one_function():
    def twice(x):
        return relax.op.nn.max_pool2d(relax.op.nn.max_pool2d(x, (3, 3), padding=(1, 1)), (3, 3), padding=(1, 1))

    mod = relax.transform.LegalizeOps(exact_legalization(TARGET))(relax_module([(1, 2, 4, 4)], twice))
    assert sum(isinstance(f, tvm.tirx.PrimFunc) for f in mod.functions.values()) == 1


HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LOOKS = {
    "max": lambda x: op.max(x, 1),
    "min": lambda x: op.min(x, 1),
    "argmax": lambda x: op.argmax(x, 1),
    "argmin": lambda x: op.argmin(x, 1),
    "max_pool": lambda x: op.nn.max_pool2d(op.expand_dims(x, [0, 1]), (1, 2), strides=(1, 2)),
    "isfinite": op.isfinite,
    "isinf": op.isinf,
    "isnan": op.isnan,
    "mod": lambda x: op.mod(x, op.flip(x, 1)),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", LOOKS)
def test_numbers_of_half_precision_are_looked_at_as_they_are(name, dtype):
    x = np.array([[-INF] * 4, [INF] * 4, [INF, -INF, np.nan, 1], [-7, 2.5, -0.0, 3]]).astype(HALVES[dtype])
    got = tvm_rammer.compile(relax_module([x.shape], LOOKS[name], dtype=dtype))(x)
    want = tvm_rammer.compile(relax_module([x.shape], LOOKS[name]))(x.astype("float32"))
    assert str(got.dtype) == (dtype if want.dtype == np.float32 else str(want.dtype))
    np.testing.assert_array_equal(got.astype(want.dtype), want)


@pytest.mark.parametrize("alpha", [0.0, 0.5, -2.0])
def test_leaky_rectifiers_multiply_only_what_is_less_than_zero(alpha):
    x = np.array([-INF, INF, np.nan, 0, -1, 2], "float32")
    slopes = {"slope": np.array([INF, 0, 1, INF, -INF, np.nan], "float32"), "one": np.float32([alpha])}
    nodes = [("LeakyRelu", ["x"], {"alpha": alpha}), ("PRelu", ["x", "slope"], {}), ("PRelu", ["x", "one"], {})]
    proto = model(nodes, {"x": x}, slopes)
    for got, want in zip(results(proto, {"x": x}), by_onnxruntime(proto, {"x": x}), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("last", [0, 1])
def test_the_place_of_integers_that_are_all_extreme(dtype, last):
    ends = np.iinfo(dtype)
    x = np.array([[ends.min] * 3, [ends.max] * 3, [ends.min, 5, ends.max]], dtype)
    more = {"axis": 1, "keepdims": 0, "select_last_index": last}
    most, least = results(model([("ArgMax", ["x"], more), ("ArgMin", ["x"], more)], {"x": x}), {"x": x})
    np.testing.assert_array_equal(most, [2, 2, 2] if last else [0, 0, 2])
    np.testing.assert_array_equal(least, [2, 2, 0] if last else [0, 0, 0])
