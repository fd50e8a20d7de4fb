"""Transposed convolutions of weights that may be infinite or NaN: where no pixel lies, none of them counts."""

import numpy as np
import pytest

from tests.hostile import by_onnxruntime, model, results


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("kernel", "given"),
    [
        ([3], {"strides": [3], "pads": [1, 0]}),
        ([3, 2], {"dilations": [2, 1], "strides": [2, 1], "group": 2, "output_padding": [1, 0]}),
        ([2, 2], {"strides": [2, 3], "output_shape": [9, 11]}),
        ([4, 5], {"strides": [2, 3], "pads": [1, 2, 0, 1]}),
        ([2, 3, 1], {"strides": [2, 1, 2], "auto_pad": "SAME_UPPER"}),
    ],
)
def test_weights_meet_pixels_alone(kernel, given, constant):
    rng = np.random.default_rng(0)
    x = {"x": rng.standard_normal((2, 4, *[4] * len(kernel))).astype("float32")}
    weights = rng.standard_normal((4, 3, *kernel)).astype("float32")
    weights[0, 0].flat[0], weights[1, 1].flat[0], weights[3, 2].flat[-1] = np.inf, -np.inf, np.nan
    arrays, constants = (x, {"w": weights}) if constant else (x | {"w": weights}, {})
    proto = model([("ConvTranspose", ["x", "w"], given)], arrays, constants)
    (want,) = by_onnxruntime(proto, arrays)
    assert 0 < np.isfinite(want).sum() < want.size
    np.testing.assert_allclose(results(proto, arrays)[0], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "given"),
    [
        ([4, 4, 4], {"strides": [2, 2, 2], "pads": [1, 1, 1, 1, 1, 1]}),
        ([3, 2, 5], {"strides": [2, 1, 3], "pads": [1, 0, 2, 0, 1, 1], "output_padding": [1, 0, 2], "group": 2}),
        ([3, 3, 3], {}),
        ([2, 2, 2], {"strides": [2, 2, 2], "group": 4}),
        ([3, 1, 1], {"strides": [1, 2, 1]}),
        ([2, 2, 3], {"strides": [1, 1, 2], "pads": [1, 3, 2, 1, 2, 2]}),
        ([5, 5, 5], {"strides": [4, 4, 4]}),
    ],
    ids=["one_convolution", "many", "stride_1", "one_tap", "fewer_taps_than_strides", "more_cut_than_taps", "too_many"],
)
def test_volumes(kernel, given):
    """By phases, but for the last three."""
    rng = np.random.default_rng(0)
    x = {"x": rng.standard_normal((2, 4, 3, 5, 4)).astype("float32")}
    weights = {"w": rng.standard_normal((4, 3, *kernel)).astype("float32")}
    weights["b"] = np.arange(3 * given.get("group", 1), dtype="float32")
    proto = model([("ConvTranspose", ["x", "w", "b"], given)], x, weights)
    (want,) = by_onnxruntime(proto, x)
    np.testing.assert_allclose(results(proto, x)[0], want, rtol=1e-4, atol=1e-5)


def test_volumes_of_double_precision():
    """ONNX Runtime has none: against the sum that ONNX says."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((1, 3, 2, 3, 2)), rng.standard_normal((3, 2, 2, 2, 2))
    proto = model([("ConvTranspose", ["x", "w"], {"strides": [2, 2, 2]})], {"x": x}, {"w": weights})
    (got,) = results(proto, {"x": x})
    want = np.einsum("ncdhw,cfijk->nfdihjwk", x, weights).reshape(1, 2, 4, 6, 4)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "given"),
    [
        ([2, 2], {"strides": [2, 2]}),
        ([3, 4], {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [0, 1], "group": 2}),
        ([4], {"strides": [2], "pads": [1, 1]}),
    ],
)
def test_as_many_images_as_only_the_data_say(kernel, given):
    rng = np.random.default_rng(0)
    x = {"x": rng.standard_normal((5, 4, *[4] * len(kernel))).astype("float32")}
    x["c"] = np.array([True, False, True, True, False])
    weights = {"w": rng.standard_normal((4, 6 // given.get("group", 1), *kernel)).astype("float32")}
    proto = model([("Compress", ["x", "c"], {"axis": 0}), ("ConvTranspose", ["y0", "w"], given)], x, weights)
    for got, want in zip(results(proto, x), by_onnxruntime(proto, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_half_precision_is_added_up_in_float32():
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal(shape).astype("float16") for shape in [(1, 300, 4), (300, 2, 3)])
    (got,) = results(model([("ConvTranspose", ["x", "w"], {})], {"x": x, "w": weights}), {"x": x, "w": weights})
    want = np.zeros((1, 2, 6))
    for tap in range(3):
        want[0, :, tap : tap + 4] += weights[:, :, tap].astype("float64").T @ x[0].astype("float64")
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
