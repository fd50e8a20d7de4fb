"""Trees of ai.onnx.ml's tree ensembles for regression and classification, against ONNX Runtime."""

import numpy as np
import pytest

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.read import SMALL_ELEMENTS

from ....models import node, random, value
from .learned import STUMP, both, learned, leaves, same


def forest(trees, depth, results, side, modes=("BRANCH_LEQ",), missing=False, seed=0):
    """Full trees of random comparisons with three columns, whose leaves have a weight for each result."""
    rng = np.random.default_rng(seed)
    inner = 2**depth - 1
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes = {name: [] for name in names}
    tracks, weights = [], []
    for tree in range(trees):
        for at in range(2 * inner + 1):
            leaf = at >= inner
            row = (tree, at, int(rng.integers(3)), "LEAF" if leaf else str(rng.choice(modes)))
            row += (float(rng.integers(-2, 3)) / 2, 0 if leaf else 2 * at + 1, 0 if leaf else 2 * at + 2)
            for name, given in zip(names, row, strict=True):
                nodes[name].append(given)
            tracks.append(int(missing and rng.integers(2)))
            weights += [(tree, at, k, float(rng.random())) for k in range(results) if leaf]
    found = {f"nodes_{name}": given for name, given in nodes.items()}
    found["nodes_missing_value_tracks_true"] = tracks
    for name, given in zip(("treeids", "nodeids", "ids", "weights"), zip(*weights, strict=True), strict=True):
        found[f"{side}_{name}"] = list(given)
    return found


def test_an_element_that_equals_the_value_of_a_node(run):
    x = np.array([[0, 0.25], [0, 0.2501], [0, -1], [0, np.nan]], "float32")
    for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ"):
        stump = STUMP | {"nodes_modes": [mode, "LEAF", "LEAF"]}
        same(run, "TreeEnsembleRegressor", x, n_targets=1, **stump, **leaves("target", [{0: 1.0}, {0: 2.0}]))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GTE", "BRANCH_EQ"]])
def test_forests_of_regression(modes, missing, run):
    x = np.round(2 * random(9, 3)) / 2
    x[3, 1] = x[5] = np.nan
    trees = forest(7, 4, 2, "target", modes, missing)
    same(run, "TreeEnsembleRegressor", x, n_targets=2, base_values=[0.5, -1.0], **trees)
    same(run, "TreeEnsembleRegressor", x, n_targets=2, aggregate_function="AVERAGE", **trees)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("base", [False, True])
def test_forests_of_classification(transform, base, run):
    more = {"base_values": [0.3, -0.2, 0.1, 4.0]} if base else {}
    same(run, "TreeEnsembleClassifier", random(9, 3), both(), classlabels_int64s=[7, 8, 5, 1],
         post_transform=transform, **forest(5, 3, 4, "class"), **more)  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("weight", [0.2, -0.3])
def test_two_classes_of_one_number(weight, transform, run):
    """A probability where no weight is negative, else a sum that is above 0 or not."""
    x = np.array([[0, 0], [0, 1]], "float32")
    found = leaves("class", [{0: weight}, {0: 0.7}])
    same(run, "TreeEnsembleClassifier", x, both(), classlabels_int64s=[10, 11], post_transform=transform,
         **STUMP, **found)  # fmt: skip
    same(run, "TreeEnsembleClassifier", x, both(), classlabels_int64s=[10, 11], post_transform=transform,
         base_values=[0.1], **STUMP, **found)  # fmt: skip


def test_a_class_that_no_leaf_speaks_of_is_not_the_label(run):
    x = np.array([[0, 0], [0, 1]], "float32")
    found = leaves("class", [{0: 0.8, 2: 0.0}, {0: -0.3, 2: -0.1}])
    same(run, "TreeEnsembleClassifier", x, both(), classlabels_int64s=[10, 11, 12], **STUMP, **found)


def test_scores_alone_where_labels_are_strings_or_unclear(run):
    x = np.array([[0, 0], [0, 1]], "float32")
    found = leaves("class", [{0: 0.8, 1: 0.2}, {0: 0.3, 1: 0.7}])
    for labels in ({"classlabels_strings": ["a", "b"]}, {"classlabels_int64s": [0, 1]}):
        proto = learned("TreeEnsembleClassifier", [value("x", [2, 2])], both(), **STUMP, **found, **labels)
        with pytest.raises(UnsupportedOperatorError, match=r"TreeEnsembleClassifier.*take the scores alone"):
            load_model(proto)
        del proto.graph.output[0]
        np.testing.assert_allclose(run(load_model(proto), x), [[0.8, 0.2], [0.3, 0.7]], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": [7, 0, 0]}, "not there"),
        ({"nodes_truenodeids": [0, 0, 0]}, "first node is not its root"),
        (
            {
                "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LT"],
                "nodes_truenodeids": [1, 0, 1],
                "nodes_falsenodeids": [2, 0, 2],
            },
            "its own ancestor",
        ),
        ({"nodes_featureids": [5, 0, 0]}, r"column \[5\] of 2"),
        ({"nodes_values": [1.0]}, "not of one length"),
        ({"nodes_nodeids": [0, 1, 1]}, "twice"),
        ({"target_ids": [0, 3]}, "result 3"),
    ],
)
def test_trees_that_are_none_are_refused(change, message):
    found = STUMP | leaves("target", [{0: 1.0}, {0: 2.0}]) | {"n_targets": 1} | change
    with pytest.raises(ModelError, match=message):
        load_model(learned("TreeEnsembleRegressor", [value("x", [2, 2])], [value("y", None)], **found))


def test_what_is_lacking_beside_trees_is_told_before_they_are_read():
    attributes = forest(2, 2, 3, "class")
    attributes["nodes_values"] = attributes["nodes_values"][1:]
    proto = learned("TreeEnsembleClassifier", [value("x", [4, 3])], both(), **attributes, classlabels_int64s=[0, 1, 2])
    with pytest.raises(ModelError, match="lists of nodes that are not of one length"):
        load_model(proto)
    proto.graph.node.append(node("ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]))
    with pytest.raises(UnsupportedOperatorError, match="ZipMap"):
        load_model(proto)


def test_large_trees(run):
    """Their lists are not shown to onnx's shape inference."""
    attributes = forest(3, 10, 2, "target")
    assert len(attributes["nodes_values"]) > SMALL_ELEMENTS
    same(run, "TreeEnsembleRegressor", random(5, 3), n_targets=2, **attributes)
