"""Legalizations of our own: the very same functions as TVM's without a warning, or more exact ones."""

from functools import partial

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from onnx.reference import ReferenceEvaluator
from tvm import relax

import tvm_rammer
from tests.functions import TARGET, relax_module
from tests.hostile import model, results
from tvm_rammer.relay_passes.passes.legalization import exact_legalization


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [3, [1, 2], [[1, 2], [0, 1]], np.array([1], "int32")])
def test_take_is_tvms_without_the_warning(axis, indices, capfd):
    mod = relax_module([(8, 16)], lambda x: relax.op.take(x, relax.const(np.array(indices)), axis=axis, mode="fast"))
    stock = relax.transform.LegalizeOps()(mod)
    assert "Fast mode" in capfd.readouterr().err
    ours = relax.transform.LegalizeOps(exact_legalization(TARGET))(mod)
    assert "Fast mode" not in capfd.readouterr().err
    assert tvm_ffi.structural_equal(ours, stock)


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 1e-3), ("float32", 2e-6), ("float64", 1e-14)])
def test_hyperbolic_and_inverse_functions_have_vectors_and_all_their_range(dtype, unit):
    values = [0, 1e-30, -1e-5, 0.3, -0.99, 1, 1.5, -7, 30, 88.5, 89.3, -89.3, 709.5, -np.inf, np.inf, np.nan]
    with np.errstate(all="ignore"):
        x = np.array(values).astype(dtype)
        functions = {"Cosh": np.cosh, "Sinh": np.sinh, "Acos": np.arccos, "Asin": np.arcsin, "Atan": np.arctan}
        functions |= {"Acosh": np.arccosh, "Asinh": np.arcsinh, "Tanh": np.tanh, "Atanh": np.arctanh}
        got = results(model([(op, ["x"], {}) for op in functions], {"x": x}), {"x": x})
        for (op, function), y in zip(functions.items(), got, strict=True):
            want = function(x.astype("float64")).astype(dtype)
            np.testing.assert_allclose(y, want, rtol=unit, atol=float(np.finfo(dtype).tiny), err_msg=op)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_activations_of_half_precision_are_those_of_float32_rounded(dtype):
    """Near 0, and where a curve comes near to it, half precision leaves nothing of them."""
    ops = ["Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "Mish", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"]
    x = np.array([0, 1e-4, -1e-4, 0.009, -0.3, 2, -2.496, -3.83, -7.6, -11, 12, np.inf, -np.inf]).astype(dtype)
    got = results(model([(op, ["x"], {}) for op in ops], {"x": x}, opset=22), {"x": x})
    wide = x.astype("float32")
    with np.errstate(all="ignore"):
        want = ReferenceEvaluator(model([(op, ["x"], {}) for op in ops], {"x": wide}, opset=22)).run(None, {"x": wide})
    unit = float(ml_dtypes.finfo(dtype).eps)
    for op, y, right in zip(ops, got, want, strict=True):
        assert y.dtype == dtype
        np.testing.assert_allclose(y.astype("float32"), right, rtol=unit, atol=1e-6, err_msg=op)


@pytest.mark.parametrize(
    ("dtype", "unit"), [("bfloat16", 2e-2), ("float16", 3e-3), ("float32", 1e-5), ("float64", 1e-12)]
)
def test_layers_are_normalised_in_every_type(dtype, unit):
    shape, axes = (3, 4, 8), [1, 2]
    arrays = [np.random.default_rng(n).normal(size=s).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
              for n, s in enumerate([shape, shape[1:], shape[1:]])]  # fmt: skip
    mod = relax_module([a.shape for a in arrays], partial(relax.op.nn.layer_norm, axes=axes, epsilon=0.1), dtype=dtype)
    x, scale, bias = (a.astype("float64") for a in arrays)
    centred = x - x.mean((1, 2), keepdims=True)
    want = centred / np.sqrt((centred**2).mean((1, 2), keepdims=True) + 0.1) * scale + bias
    got = np.asarray(tvm_rammer.compile(mod)(*arrays))
    assert str(got.dtype) == dtype
    np.testing.assert_allclose(got.astype("float64"), want, rtol=unit, atol=unit)


def test_a_product_of_halves_is_as_large_as_the_last_number_makes_it():
    """Half precision makes 0 of the first two of one row, and infinity of those of the other."""
    x = np.array([[1e-5, 1e-5, 1e4, 6e4], [6e4, 6e4, 1e-4, 1e-4]], "float16")
    module = tvm_rammer.compile(relax_module([x.shape], lambda x: relax.op.prod(x, 1), dtype="float16"), cache=False)
    np.testing.assert_allclose(module(x), x.astype("float32").prod(1), rtol=2e-3)


@pytest.mark.parametrize(
    ("dtype", "unit"), [("bfloat16", 2e-2), ("float16", 3e-3), ("float32", 1e-5), ("float64", 1e-12)]
)
def test_powers_by_constants_without_a_warning(dtype, unit, capfd):
    """TVM warns of each from the third on."""
    x = np.array([-np.inf, -3, -0.5, 0, 0.25, 2, np.inf, np.nan]).astype(
        ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    )

    def powers(x):
        return [relax.op.power(x, relax.const(n, dtype)) for n in (2.0, 3.0, 4.0, 1.5, -1.0)]

    mod = relax_module(
        [x.shape], lambda x: relax.op.concat([relax.op.expand_dims(p, 0) for p in powers(x)]), dtype=dtype
    )
    got = np.asarray(tvm_rammer.compile(mod, cache=False)(x)).astype("float64")
    with np.errstate(all="ignore"):
        want = np.array([np.power(x.astype("float64"), n) for n in (2.0, 3.0, 4.0, 1.5, -1.0)])
    np.testing.assert_allclose(got, want, rtol=unit)
    assert capfd.readouterr().err == ""
