"""The operator TreeEnsemble, which opset 5 of ai.onnx.ml has in the place of the two older ones."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.read import SMALL_ELEMENTS

from ....models import random, tensor, value
from .learned import learned, same


def branching(trees, depth, targets, dtype, modes=(0,), missing=False):
    """The attributes of a TreeEnsemble of full trees, of random comparisons with three columns."""
    rng = np.random.default_rng(0)
    inner = 2**depth - 1
    ends = [int(2 * at + 1 >= inner) for at in range(inner)] * trees
    following = [
        [2 * at + side - (inner if last else 0) + tree * (inner + last) for tree, at, last in _nodes(trees, inner)]
        for side in (1, 2)
    ]
    leaves = trees * (inner + 1)
    return {
        "n_targets": targets,
        "tree_roots": [tree * inner for tree in range(trees)],
        "nodes_splits": tensor("", rng.integers(-2, 3, trees * inner).astype(dtype) / 2),
        "nodes_featureids": rng.integers(0, 3, trees * inner).tolist(),
        "nodes_modes": tensor("", rng.choice(modes, trees * inner).astype("uint8")),
        "nodes_truenodeids": following[0],
        "nodes_falsenodeids": following[1],
        "nodes_trueleafs": ends,
        "nodes_falseleafs": ends,
        "leaf_targetids": rng.integers(0, targets, leaves).tolist(),
        "leaf_weights": tensor("", rng.standard_normal(leaves).astype(dtype)),
    } | ({"nodes_missing_value_tracks_true": rng.integers(0, 2, trees * inner).tolist()} if missing else {})


def _nodes(trees, inner):
    """The tree and the place in it of each node, and whether leaves come after it."""
    return [(tree, at, 2 * at + 1 >= inner) for tree in range(trees) for at in range(inner)]


def table(dtype):
    """Rows among which are elements that equal the value of a node, and some that are missing."""
    x = np.random.default_rng(1).integers(-3, 4, (20, 3)).astype(dtype) / 2
    x[::5, 1] = np.nan
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", range(5))
def test_trees_of_the_newer_kind(dtype, mode, run):
    attributes = branching(4, 3, 2, dtype, (mode,), missing=True)
    outputs = [value("y", None, TensorProto.DOUBLE if dtype == "float64" else TensorProto.FLOAT)]
    same(run, "TreeEnsemble", table(dtype), outputs, version=5, **attributes)


def test_the_mean_of_trees_with_many_leaves(run):
    attributes = branching(2, 11, 1, "float32")
    assert len(attributes["leaf_targetids"]) > SMALL_ELEMENTS
    same(run, "TreeEnsemble", random(9, 3), version=5, aggregate_function=0, **attributes)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"nodes_modes": tensor("", np.full(3, 6, "uint8"))}, UnsupportedOperatorError, "mode 6"),
        ({"aggregate_function": 2}, UnsupportedOperatorError, "aggregate_function 2"),
        ({"post_transform": 1}, UnsupportedOperatorError, "post_transform 1"),
        ({"tree_roots": [3]}, ModelError, "a root that is not there"),
        ({"nodes_truenodeids": [1, 0, 4]}, ModelError, "a branch to a node that is not there"),
        ({"nodes_truenodeids": [0, 0, 2]}, ModelError, "its own ancestor"),
        ({"leaf_targetids": [0, 0, 1, 0]}, ModelError, "another target than its 1"),
        ({"nodes_featureids": [0, 3, 1]}, ModelError, "reads the column"),
        ({"nodes_featureids": [0, 1]}, ModelError, "not of one length"),
    ],
)
def test_trees_of_the_newer_kind_that_are_refused(change, error, message):
    attributes = branching(1, 2, 1, "float32") | change
    with pytest.raises(error, match=message):
        load_model(learned("TreeEnsemble", [value("x", [4, 3])], [value("y", None)], version=5, **attributes))
