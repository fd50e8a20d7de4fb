"""What TVM writes by hand starts no threads on a CPU, and scatters are rOperators."""

import numpy as np
import pytest

import tvm_rammer
from tests.hostile import by_onnxruntime, model

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((6, 7, 5)).astype("float32")


def agrees(kind, indices, updates, **given):
    arrays = {"x": DATA, "i": indices, "u": updates}
    proto = model([(kind, ["x", "i", "u"], given)], arrays)
    module = tvm_rammer.compile(proto, cache=False)
    assert "Nothing was left to stock TVM" in module.explain()
    np.testing.assert_allclose(np.asarray(module(**arrays)), by_onnxruntime(proto, arrays)[0], rtol=1e-6)
    return module


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scattered_elements(axis, reduction):
    size = DATA.shape[axis]
    places = [RNG.permutation(size)[: size - 2] - size // 2 for _ in range(DATA.size // size)]  # each of them once
    shape = np.moveaxis(DATA, axis, -1).shape[:-1]
    indices = np.moveaxis(np.array(places).reshape(*shape, size - 2), -1, axis)
    agrees(
        "ScatterElements", indices, RNG.standard_normal(indices.shape).astype("float32"), axis=axis, reduction=reduction
    )


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_rows_and_single_numbers(depth, reduction):
    every = np.stack(np.unravel_index(RNG.permutation(np.prod(DATA.shape[:depth]))[:5], DATA.shape[:depth]), axis=-1)
    updates = RNG.standard_normal((5, *DATA.shape[depth:])).astype("float32")
    agrees("ScatterND", every.astype(np.int64), updates, reduction=reduction)


def test_an_index_outside_ends_the_call():
    module = agrees("ScatterND", np.array([[5]]), DATA[:1])
    with pytest.raises(tvm_rammer.ModelError, match="ScatterND"):
        module(x=DATA, i=np.array([[6]]), u=DATA[:1])
