"""CumSum and CumProd along every axis, beside NumPy."""

import itertools

import numpy as np
import pytest

import tvm_rammer
from tests.hostile import model

SHAPES = ((5,), (1, 7), (6, 1), (3, 4, 5))


def expected(op, values, axis, exclusive, reverse):
    start, run = (0, np.cumsum) if op == "CumSum" else (1, np.cumprod)
    values = np.flip(values, axis) if reverse else values
    if exclusive:
        values = np.insert(values, 0, start, axis).take(range(values.shape[axis]), axis)
    found = run(values, axis, dtype=values.dtype)
    return np.flip(found, axis) if reverse else found


def sums(values):
    """A module that sums up along the first axis."""
    proto = model([("CumSum", ["x", "axis"], {})], {"x": values}, {"axis": np.array(0)})
    return tvm_rammer.compile(proto, cache=False)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_along_each_axis(op, shape):
    values = np.random.default_rng(0).standard_normal(shape).astype("float32")
    axes = range(-len(shape), len(shape))
    cases = list(itertools.product(axes, (0, 1), (0, 1)))
    nodes = [(op, ["x", f"axis {axis}"], {"exclusive": e, "reverse": r}) for axis, e, r in cases]
    proto = model(nodes, {"x": values}, {f"axis {axis}": np.array(axis) for axis in axes}, opset=26)
    module = tvm_rammer.compile(proto, cache=False)
    for found, case in zip(module(values), cases, strict=True):
        np.testing.assert_allclose(found, expected(op, values, *case), rtol=1e-5, atol=1e-6, err_msg=str(case))
    assert not module.compilation.stock_calls


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_of_other_types(dtype):
    values = np.array([[3, -1, 2, 7], [0, 5, -8, 1]], dtype)
    found = sums(values)(values)
    np.testing.assert_array_equal(found, values.cumsum(0))
    assert found.dtype == values.dtype


def test_integers_wrap_around():
    values = np.array([2**62, 2**62, 2**62], "int64")
    np.testing.assert_array_equal(sums(values)(values), values.cumsum())


def test_no_number_is_in_all_sums_behind_it():
    values = np.float32([1, np.inf, 2, -np.inf, 3])
    found = sums(values)(values)
    np.testing.assert_array_equal(found, [1, np.inf, np.inf, np.nan, np.nan])


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_of_as_many_as_the_data_say(op, axis):
    """None among them: TVM's form writes a first element in any case, behind the end of the result."""
    values = np.random.default_rng(0).standard_normal((3, 4, 5)).astype("float32")
    nodes = [
        ("Compress", ["x", "chosen"], {"axis": axis}),
        (op, ["y0", "axis"], {}),
        (op, ["y0", "axis"], {"exclusive": 1}),
    ]
    proto = model(nodes, {"x": values, "chosen": np.array([True])}, {"axis": np.array(axis)}, opset=26)
    module = tvm_rammer.compile(proto, cache=False)
    for chosen in ([True], [False]):
        _, found, exclusive = module(values, np.array(chosen))
        taken = values.compress(chosen, axis)
        np.testing.assert_allclose(found, expected(op, taken, axis, 0, 0), rtol=1e-6)
        np.testing.assert_allclose(exclusive, expected(op, taken, axis, 1, 0), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)], ids=str)
def test_of_nothing(shape):
    values = np.zeros(shape, "float32")
    assert sums(values)(values).shape == shape
