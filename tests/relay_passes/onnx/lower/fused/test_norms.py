"""Norms that ONNX Runtime's optimisers write, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, node, random, tensor, value, with_contrib
from ..test_operators import close
from .test_operators import contrib, microsoft

NORMS = {
    "SkipLayerNormalization": ["x", "s", "gamma", "beta", "bias"],
    "SkipLayerNormalization without beta": ["x", "s", "gamma"],
    "SkipLayerNormalization without bias": ["x", "s", "gamma", "beta"],
    "SkipSimplifiedLayerNormalization": ["x", "s", "gamma", "bias"],
    "SkipSimplifiedLayerNormalization without bias": ["x", "s", "gamma"],
}


RESULTS = [["y"], ["y", "", "", "t"], ["y", "mean", "inverse", "t"], ["y", "", "inverse"]]


@pytest.mark.parametrize("outputs", RESULTS)
@pytest.mark.parametrize("name", NORMS)
def test_a_normalised_sum(name, outputs, run):
    nodes = [microsoft(name.partition(" ")[0], NORMS[name], outputs, epsilon=1e-5)]
    constants = [tensor(n, random(8, seed=i)) for i, n in enumerate(["gamma", "beta", "bias"]) if n in NORMS[name]]
    proto = contrib(nodes, [value("x", [2, 3, 8]), value("s", [2, 3, 8])], [n for n in outputs if n], constants)
    close(run, proto, x=random(2, 3, 8), s=random(2, 3, 8, seed=9))


@pytest.mark.parametrize("shape", [[3, 8], [1, 3, 8]])
@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_one_skip_for_the_whole_batch(kind, shape, run):
    proto = contrib(
        [microsoft(kind, ["x", "s", "gamma"], ["y"])], [value("x", [2, 3, 8]), value("s", shape)], ["y"],
        [tensor("gamma", random(8))],
    )  # fmt: skip
    close(run, proto, x=1e-4 * random(2, 3, 8), s=1e-4 * random(*shape, seed=9))  # so small that epsilon counts


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_a_sum_whose_squares_half_precision_does_not_hold(kind, opset, run):
    half, shape = TensorProto.FLOAT16, [2, 3, 8]
    nodes = [microsoft(kind, ["x", "s", "gamma"], ["y", "", "inverse"], epsilon=1e-5)]
    results = [value("y", shape, half), value("inverse", [2, 3, 1])]
    given = [value("x", shape, half), value("s", shape, half)]
    proto = with_contrib(model(nodes, given, results, [tensor("gamma", random(8).astype("float16"))], opset=opset))
    x, s = ((3000 * random(*shape, seed=i)).astype("float16") for i in (1, 2))
    for got, expected in zip(run(load_model(proto), x, s), by_onnxruntime(proto, x=x, s=s), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=3e-3, atol=3e-3)


@pytest.mark.parametrize("elem", [TensorProto.FLOAT, TensorProto.FLOAT16])
@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_rows_by_the_root_of_their_mean_square(axis, elem, run):
    """With its inverse as a result; rows of half precision by a scale of single precision."""
    dtype, shape = "float32" if elem == TensorProto.FLOAT else "float16", (2, 3, 8)
    nodes = [node("SimplifiedLayerNormalization", ["x", "gamma"], ["y", "inverse"], axis=axis)]
    constants = [tensor("gamma", random(*shape[axis:]))]
    proto = model(nodes, [value("x", shape, elem)], ["y", "inverse"], constants)
    x = (300 * random(*shape, seed=1)).astype(dtype)
    for got, expected in zip(run(load_model(proto), x), by_onnxruntime(proto, x=x), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_norm_of_onnx_runtime_in_onnxs_own_domain(run):
    nodes = [node("SimplifiedLayerNormalization", ["x", "gamma"], ["y"], axis=-1, epsilon=1e-5)]
    proto = model(nodes, [value("x", [2, 3, 8])], ["y"], [tensor("gamma", random(8))])
    close(run, proto, x=random(2, 3, 8, seed=1))


@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 11), (2, 14)])
@pytest.mark.parametrize("elem", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_a_layer_norm_before_opset_17(axis, opset, elem, run):
    shape = (2, 3, 8)
    dtype = "float32" if elem == TensorProto.FLOAT else "float16"
    constants = [tensor(name, random(*shape[axis:], seed=i).astype(dtype)) for i, name in enumerate(["gamma", "beta"])]
    nodes = [node("LayerNormalization", ["x", "gamma", "beta"], ["y", "mean", "inverse"], axis=axis, epsilon=1e-5)]
    proto = model(
        nodes, [value("x", shape, elem)], [value("y", shape, elem), "mean", "inverse"], constants, opset=opset
    )
    x = random(*shape, seed=7).astype(dtype)
    for got, expected in zip(run(load_model(proto), x), by_onnxruntime(proto, x=x), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("opset", [11, 14])
def test_a_normalised_sum_before_opset_17(opset, run):
    nodes = [microsoft("SkipLayerNormalization", ["x", "s", "gamma", "beta", "bias"], ["y", "", "", "t"], epsilon=1e-5)]
    constants = [tensor(n, random(8, seed=i)) for i, n in enumerate(["gamma", "beta", "bias"])]
    proto = model(nodes, [value("x", [2, 3, 8]), value("s", [2, 3, 8])], ["y", "t"], constants, opset=opset)
    close(run, with_contrib(proto), x=random(2, 3, 8), s=random(2, 3, 8, seed=9))


def test_a_domain_whose_version_the_file_leaves_out(run):
    proto = model([microsoft("FastGelu", ["x"], ["y"])], [value("x", [2, 5])], ["y"])
    assert [o.domain for o in proto.opset_import] == [""]
    close(run, proto, x=np.linspace(-3, 3, 10, dtype="float32").reshape(2, 5))


def test_operators_after_one_another_in_half_precision(run):
    # What comes of the first has no type until it is lowered; constants of the second are of half precision, too.
    half, shape = TensorProto.FLOAT16, (2, 3, 8)
    nodes = [
        microsoft("SkipLayerNormalization", ["x", "s", "gamma"], ["n"], epsilon=1e-5),
        microsoft("Gelu", ["n"], ["g"]),
        microsoft("QuickGelu", ["g"], ["y"]),
    ]
    constants = [tensor("gamma", random(8).astype("float16"))]
    proto = model(nodes, [value("x", shape, half), value("s", shape, half)], [value("y", shape, half)], constants)
    x, s = (random(*shape, seed=i).astype("float16") for i in (1, 2))
    got, (expected,) = run(load_model(proto), x, s), by_onnxruntime(proto, x=x, s=s)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=5e-3, atol=5e-3)
