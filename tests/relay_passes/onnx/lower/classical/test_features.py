"""Operators of ai.onnx.ml on columns, and its linear models, against ONNX Runtime; what is refused of all of them."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, tensor, value
from ..judge import by_reference
from .learned import STUMP, both, learned, leaves, same

INT64 = TensorProto.INT64


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


@pytest.mark.parametrize(("keys", "values"), [("int64", "int64"), ("float64", "float64"), ("int64", "int16")])
def test_label_encoder_by_tensors(keys, values, run):
    table = {"keys": np.array([5, 3, 7], keys), "values": np.array([10, 20, 30], values)}
    tensors = {f"{side}_tensor": tensor(side, numbers) for side, numbers in table.items()}
    tensors["default_tensor"] = tensor("default", np.array([4], values))
    ends = [value(n, [4], helper.np_dtype_to_tensor_dtype(np.dtype(t))) for n, t in (("x", keys), ("y", values))]
    proto = learned("LabelEncoder", ends[:1], ends[1:], version=4, **tensors)
    by_reference(run, proto, x=np.array([3, 7, 5, -1], keys))


def test_one_hot_encoder_of_numbers(run):
    same(run, "OneHotEncoder", np.array([[3], [7], [5]]), cats_int64s=[5, 3], zeros=1)
    same(run, "OneHotEncoder", np.array([3.0, 7.9, 5.5], "float32"), cats_int64s=[5, 3, 7])
    extreme = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.5, -0.5], "float32")
    same(run, "OneHotEncoder", extreme, cats_int64s=[-1, 0, 2**63 - 1])


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
