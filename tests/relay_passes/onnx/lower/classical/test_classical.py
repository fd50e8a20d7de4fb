"""Operators of ai.onnx.ml, against ONNX Runtime, and by hand where it has another opinion than the reference."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.onnx.read import SMALL_ELEMENTS

from ....models import by_onnxruntime, model, node, random, tensor, value

INT64, DOUBLE = TensorProto.INT64, TensorProto.DOUBLE
STUMP = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.25, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}


def learned(kind, inputs, outputs, constants=(), version=2, **attributes):
    """A model of one operator of ai.onnx.ml."""
    nodes = [node(kind, [i.name for i in inputs] + [c.name for c in constants], [o.name for o in outputs])]
    nodes[0].domain = "ai.onnx.ml"
    nodes[0].attribute.extend(helper.make_attribute(name, given) for name, given in attributes.items())
    proto = model(nodes, inputs, outputs, constants)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", version))
    return proto


def same(run, kind, x, outputs=None, constants=(), **attributes):
    """Compare one operator with ONNX Runtime, types and shapes, too."""
    elem = helper.np_dtype_to_tensor_dtype(x.dtype)
    proto = learned(kind, [value("x", x.shape, elem)], outputs or [value("y", None)], constants, **attributes)
    expected = by_onnxruntime(proto, x=x)
    got = run(load_model(proto), x)
    for left, right in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def both():
    return [value("label", None, INT64), value("scores", None)]


def leaves(side, weights):
    """The attributes of a stump's two leaves, whose weights are given by class or target."""
    entries = [(leaf, k, w) for leaf, row in zip((1, 2), weights, strict=True) for k, w in row.items()]
    return {
        f"{side}_treeids": [0] * len(entries),
        f"{side}_nodeids": [leaf for leaf, _, _ in entries],
        f"{side}_ids": [k for _, k, _ in entries],
        f"{side}_weights": [w for _, _, w in entries],
    }


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


# Columns


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_scaler(dtype, run):
    x = (10 * random(4, 3)).astype(dtype)
    same(run, "Scaler", x, offset=[1.0, -2.0, 0.5], scale=[0.5, 2.0, 3.0])
    same(run, "Scaler", x, offset=[1.0], scale=[0.5])


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normalizer(norm, run):
    x = random(4, 3)
    x[1] = 0
    same(run, "Normalizer", x, norm=norm)


def test_binarizer(run):
    same(run, "Binarizer", random(4, 3), threshold=0.25)


def test_imputer(run):
    x = random(4, 3)
    x[0, 1] = x[2, 2] = np.nan
    same(run, "Imputer", x, imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    same(run, "Imputer", np.arange(6).reshape(2, 3), [value("y", None, INT64)], imputed_value_int64s=[9],
         replaced_value_int64=4)  # fmt: skip


def test_array_feature_extractor(run):
    same(run, "ArrayFeatureExtractor", random(4, 3), constants=[tensor("at", np.array([2, 0]))])
    same(run, "ArrayFeatureExtractor", random(5), constants=[tensor("at", np.array([[1, 1, 4]]))])


def test_feature_vectorizer(run):
    proto = learned(
        "FeatureVectorizer", [value("a", [2, 3]), value("b", [2, 1])], [value("y", None)], inputdimensions=[3, 1]
    )
    a, b = random(2, 3), random(2, 1)
    np.testing.assert_array_equal(run(load_model(proto), a, b), np.concatenate([a, b], 1))


def test_categories_side_by_side(run):
    """A table of categories has three axes; the file has no operator of ONNX's own, and no opset of them."""
    nodes = [
        node("OneHotEncoder", ["a"], ["categories"], cats_int64s=[1, 2, 3], zeros=1),
        node("FeatureVectorizer", ["categories", "b"], ["y"], inputdimensions=[3, 2]),
    ]
    for each in nodes:
        each.domain = "ai.onnx.ml"
    proto = model(nodes, [value("a", [2, 1], INT64), value("b", [2, 2])], ["y"])
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    feeds = {"a": np.array([[3], [1]]), "b": random(2, 2)}
    np.testing.assert_array_equal(run(load_model(proto), *feeds.values()), by_onnxruntime(proto, **feeds)[0])


def test_label_encoder_of_numbers(run):
    x = np.array([3, 7, 5, -1])
    same(run, "LabelEncoder", x, keys_int64s=[5, 3, 7], values_floats=[0.5, 1.5, 2.5], default_float=-9.0)
    same(run, "LabelEncoder", x, [value("y", None, INT64)], keys_int64s=[5, 3], values_int64s=[10, 20])


def test_one_hot_encoder_of_numbers(run):
    same(run, "OneHotEncoder", np.array([[3], [7], [5]]), cats_int64s=[5, 3], zeros=1)
    same(run, "OneHotEncoder", np.array([3.0, 7.9, 5.5], "float32"), cats_int64s=[5, 3, 7])


# Linear models


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_models_of_several_results(transform, run):
    fixed = {"coefficients": random(12).tolist(), "intercepts": random(4).tolist(), "post_transform": transform}
    same(run, "LinearClassifier", random(5, 3), both(), classlabels_ints=[4, 2, 9, 7], **fixed)
    same(run, "LinearRegressor", random(5, 3), targets=4, **fixed)


def test_linear_models_of_one_result(run):
    fixed = {"coefficients": random(3).tolist(), "intercepts": [0.1]}
    same(run, "LinearRegressor", random(5, 3), **fixed)
    same(run, "LinearClassifier", random(5, 3), both(), classlabels_ints=[4, 2], post_transform="LOGISTIC", **fixed)


# Trees


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


def test_a_file_that_does_not_say_which_version_of_ai_onnx_ml_it_uses(run):
    x = random(3, 2)
    proto = learned("Scaler", [value("x", x.shape)], [value("y", None)], offset=[0.5, 1.0], scale=[2.0, 3.0])
    del proto.opset_import[1]
    np.testing.assert_allclose(run(load_model(proto), x), by_onnxruntime(proto, x=x)[0], rtol=1e-6)


def test_string_labels_of_a_linear_model_are_refused():
    proto = learned("LinearClassifier", [value("x", [2, 2])], [value("label", None, TensorProto.STRING), both()[1]],
                    coefficients=[1.0, 2, 3, 4], classlabels_strings=["a", "b"])  # fmt: skip
    with pytest.raises(UnsupportedOperatorError, match="LinearClassifier 'label' returns strings as labels"):
        load_model(proto)


def test_scores_alone_where_labels_are_strings_or_unclear(run):
    x = np.array([[0, 0], [0, 1]], "float32")
    found = leaves("class", [{0: 0.8, 1: 0.2}, {0: 0.3, 1: 0.7}])
    for labels in ({"classlabels_strings": ["a", "b"]}, {"classlabels_int64s": [0, 1]}):
        proto = learned("TreeEnsembleClassifier", [value("x", [2, 2])], both(), **STUMP, **found, **labels)
        with pytest.raises(UnsupportedOperatorError, match=r"TreeEnsembleClassifier.*take the scores alone"):
            load_model(proto)
        del proto.graph.output[0]
        np.testing.assert_allclose(run(load_model(proto), x), [[0.8, 0.2], [0.3, 0.7]], rtol=1e-6)


# Refusals


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("Normalizer", {"norm": "MAX"}, "normalise by L1 or L2"),
        ("TreeEnsembleRegressor", {**STUMP, "aggregate_function": "MIN"}, "aggregate_function MIN"),
        ("TreeEnsembleRegressor", {**STUMP, "nodes_modes": ["BRANCH_NEQ", "LEAF", "LEAF"]}, "BRANCH_NEQ"),
        ("TreeEnsembleRegressor", {**STUMP, "post_transform": "LOGISTIC"}, "single target"),
        ("LinearClassifier", {"coefficients": [1.0, 2.0], "classlabels_ints": [0, 1]}, "not logistic"),
        ("OneHotEncoder", {"cats_int64s": [1], "zeros": 0}, "no category"),
        ("OneHotEncoder", {"cats_strings": ["a"]}, "strings"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "strings"),
    ],
)
def test_what_readers_do_not_agree_on_is_refused(kind, attributes, message):
    more = leaves("target", [{0: 1.0}, {0: 2.0}]) | {"n_targets": 1} if kind == "TreeEnsembleRegressor" else {}
    outputs = both() if kind == "LinearClassifier" else [value("y", None)]
    with pytest.raises(UnsupportedOperatorError, match=message):
        load_model(learned(kind, [value("x", [2, 2])], outputs, **attributes, **more))


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
    outputs = [value("y", None, DOUBLE if dtype == "float64" else TensorProto.FLOAT)]
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
