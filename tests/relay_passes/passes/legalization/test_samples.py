"""GridSample beside ONNX Runtime, and beside what it says where a point is no number."""

import itertools

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.hostile import by_onnxruntime, model

METHODS = ("linear", "nearest", "cubic")
PADDINGS = ("zeros", "border", "reflection")
SHAPES = {
    "images": ((2, 3, 7, 9), (2, 5, 6, 2)),
    "one row": ((1, 2, 1, 4), (1, 3, 3, 2)),
    "volumes": ((1, 2, 4, 5, 6), (1, 3, 4, 5, 3)),
}
CASES = [c for c in itertools.product(METHODS, PADDINGS, (0, 1), SHAPES) if c[0] != "cubic" or c[3] != "volumes"]


def sampled(images, grid, mode, padding, align_corners):
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    return model([("GridSample", ["x", "grid"], attributes)], {"x": images, "grid": grid}, opset=20)


@pytest.mark.parametrize(("mode", "padding", "align_corners", "shapes"), CASES)
def test_points_inside_and_outside(mode, padding, align_corners, shapes):
    rng = np.random.default_rng(0)
    images, grid = (rng.standard_normal(shape).astype("float32") for shape in SHAPES[shapes])
    grid *= 1.5
    proto = sampled(images, grid, mode, padding, align_corners)
    found = tvm_rammer.compile(proto, cache=False)(images, grid)
    np.testing.assert_allclose(found, by_onnxruntime(proto, {"x": images, "grid": grid})[0], rtol=1e-4, atol=1e-5)
    assert np.abs(grid).max() > 2, "points far outside"


@pytest.mark.parametrize(
    "size", [5, 8]
)  # of a wild pixel's row and column, those of the first leave 32 bits, to a zero
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", METHODS)
def test_points_that_are_far_away_or_no_numbers(mode, padding, size):
    """They read no pixel outside of the image, and harm no other point."""
    images = np.arange(2 * size**2, dtype="float32").reshape(1, 2, size, size)
    grid = np.zeros((1, 1, 6, 2), "float32")
    grid[0, 0, :5] = np.array([1e30, -1e30, np.inf, -np.inf, np.nan])[:, None]
    found = tvm_rammer.compile(sampled(images, grid, mode, padding, 1), cache=False)(images, grid)
    inner = images[0, :, (size - 1) // 2 : size // 2 + 1, (size - 1) // 2 : size // 2 + 1]
    if size % 2:  # else the point is between pixels
        np.testing.assert_allclose(found[0, :, 0, 5], inner[:, 0, 0])
    known = found[np.isfinite(found)]
    assert known.min() >= 0
    assert known.max() <= images.max()


@pytest.mark.parametrize("mode", METHODS)
def test_pixels_outside_are_zeros_whatever_is_inside(mode):
    """No infinite pixel meets the weight 0 of one that is not there."""
    images = np.full((1, 1, 3, 3), np.inf, "float32")
    grid = np.full((1, 2, 2, 2), 5.0, "float32")
    assert not tvm_rammer.compile(sampled(images, grid, mode, "zeros", 0), cache=False)(images, grid).any()


def test_all_of_it_is_one_kernel_of_a_gpu():
    images, grid = np.ones((1, 4, 9, 11), "float32"), np.ones((1, 6, 7, 2), "float32")
    found = tvm_rammer.compile(sampled(images, grid, "cubic", "reflection", 0), target="cuda:h200", cache=False)
    assert found.report()["launches"] == 1
    assert not found.report()["left_to_stock"]
    assert "sampled_pixels" in found.explain()


def test_places_of_half_precision_are_computed_in_float32():
    """In half precision a place beyond 2,048 is a pixel off."""
    images, grid = np.arange(3000).reshape(1, 1, 1, 3000) % 7, np.zeros((1, 2, 1, 3))
    grid[0, 0] = [0.75, 0.8125, 0.9375]
    arrays = [images.astype("float16"), grid.astype("float16")]
    mod = relax_module(
        [a.shape for a in arrays], lambda x, g: relax.op.image.grid_sample(x, g, align_corners=False), dtype="float16"
    )
    places = (grid[0, 0, 0] + 1) * 1500 - 0.5
    want = np.interp(places, np.arange(3000), images.ravel())
    np.testing.assert_allclose(np.ravel(tvm_rammer.compile(mod, cache=False)(*arrays)), want, rtol=1e-3)
