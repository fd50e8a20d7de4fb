"""NonMaxSuppression beside ONNX Runtime: equal scores and boxes, corners in any order, and no limits."""

import numpy as np
import pytest

import tvm_rammer
from tests.hostile import by_onnxruntime, model

LIMITS = {
    "all": (np.array([50]), np.array([0.5], "float32"), np.array([0.2], "float32")),
    "few": (np.array([3]), np.array([0.3], "float32"), np.array([-2.0], "float32")),
    "without a least score": (np.array([4]), np.array([0.0], "float32"), None),
    "none": (np.array([0]), np.array([0.5], "float32"), np.array([0.1], "float32")),
    "nothing said": (None, None, None),
    "all that there are": (np.array([2**63 - 1]), np.array([1.0], "float32"), np.array([0.0], "float32")),
}


def compared(boxes, scores, limits, **given):
    arrays = {"b": boxes, "s": scores}
    fixed = {f"c{n}": value for n, value in enumerate(limits) if value is not None}
    names = [f"c{n}" if f"c{n}" in fixed else "" for n in range(3)]
    proto = model([("NonMaxSuppression", ["b", "s", *names], given)], arrays, fixed)
    got = np.asarray(tvm_rammer.compile(proto, cache=False)(boxes, scores))
    np.testing.assert_array_equal(got.reshape(-1, 3), by_onnxruntime(proto, arrays)[0].reshape(-1, 3))
    return got


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("limits", LIMITS)
def test_random_boxes(limits, center):
    """Coordinates and scores are few different numbers: many boxes and scores are equal."""
    rng = np.random.default_rng(0)
    boxes = rng.integers(1, 6, (2, 40, 4)).astype("float32")
    scores = (rng.integers(-8, 9, (2, 3, 40)) / 8).astype("float32")
    found = compared(boxes, scores, LIMITS[limits], center_point_box=center)
    assert len(found) > 0 or limits in ("none", "nothing said")


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65])
def test_every_box_of_a_class_apart(count):
    """The order is that of the scores, however many there are."""
    rng = np.random.default_rng(count)
    corners = 3 * np.arange(count, dtype="float32")[:, None]
    boxes = np.concatenate([corners, corners, corners + 1, corners + 1], axis=1)[None]
    found = compared(boxes, rng.permutation(count).astype("float32")[None, None] + 1, LIMITS["all that there are"])
    assert len(found) == count


def test_boxes_without_end_overlap_none():
    """A part of infinity is no number; of such a quotient no comparison is true."""
    ends = np.array([-np.inf, 0.1, 0.5, 1.0, np.inf, 3e38], "float32")
    boxes = np.random.default_rng(0).choice(ends, (2, 30, 4))
    scores = np.linspace(0, 1, 60, dtype="float32").reshape(2, 1, 30)
    compared(boxes, scores, LIMITS["all"])


@pytest.mark.parametrize(
    ("boxes", "scores"), [((1, 9, 4), (2, 1, 9)), ((1, 9, 3), (1, 1, 9)), ((1, 9, 4), (1, 1, 8)), ((1, 9, 4), (1, 9))]
)
def test_shapes_that_do_not_fit_are_refused(boxes, scores):
    arrays = {"b": np.ones(boxes, "float32"), "s": np.ones(scores, "float32")}
    with pytest.raises(tvm_rammer.ModelError, match=r"NonMaxSuppression .* of the shape \["):
        tvm_rammer.compile(model([("NonMaxSuppression", ["b", "s"], {})], arrays))


def test_it_is_refused_on_a_gpu():
    """Its code is the host's, which cannot read a GPU's memory; so is the look at indices of unknown number."""
    boxes = {"b": np.ones((1, 9, 4), "float32"), "s": np.ones((1, 1, 9), "float32")}
    rows = {"x": np.ones((4, 3), "float32"), "c": np.ones(4, bool), "i": np.zeros(2, np.int64)}
    chosen = [("Compress", ["x", "c"], {"axis": 0}), ("Gather", ["y0", "i"], {})]
    for proto in (model([("NonMaxSuppression", ["b", "s"], {})], boxes), model(chosen, rows)):
        with pytest.raises(tvm_rammer.RammerError, match="is computed on a CPU only"):
            tvm_rammer.compile(proto, target="cuda:h200", cache=False)
