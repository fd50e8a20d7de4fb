"""CumSum and CumProd on a GPU, emulated, beside NumPy: within a block of the axis, and over blocks of blocks."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from tests.emulation.models import Way, emulated_model
from tests.hostile import model
from tests.marks import slow_but

from .test_scans import expected

SHAPES = ((1,), (5,), (2, 33), (3, 2, 32), (65, 2), (1, 1100, 2))


def emulated(nodes, values, constants):
    """The results of a model of these nodes on a small GPU; nothing of it is a stock call."""
    proto = model(nodes, {"x": values}, constants, opset=26)
    return emulated_model(proto, Way(units=3)).run({"x": values}, seed=0)


@pytest.mark.parametrize("shape", slow_but([(2, 33)], SHAPES), ids=str)
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_along_each_axis(op, shape):
    values = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype("float32")
    axes = range(len(shape))
    cases = list(itertools.product(axes, (0, 1), (0, 1)))
    nodes = [(op, ["x", f"axis {axis}"], {"exclusive": e, "reverse": r}) for axis, e, r in cases]
    found = emulated(nodes, values, {f"axis {axis}": np.array(axis) for axis in axes})
    for got, case in zip(found, cases, strict=True):
        np.testing.assert_allclose(got, expected(op, values, *case), rtol=1e-4, err_msg=str(case))


@pytest.mark.parametrize("dtype", slow_but(["int64"], ["int32", "int64", "float64", "float16", ml_dtypes.bfloat16]))
def test_of_other_types(dtype):
    values = np.arange(-40, 40).astype(dtype)
    (found,) = emulated([("CumSum", ["x", "axis"], {})], values, {"axis": np.array(0)})
    wide = "float32" if np.dtype(dtype).itemsize == 2 else dtype
    np.testing.assert_array_equal(found, values.astype(wide).cumsum().astype(dtype))
    assert found.dtype == values.dtype


def test_no_number_is_in_all_sums_behind_it():
    values = np.zeros(70, "float32")
    values[[1, 40]] = np.inf, -np.inf
    (found,) = emulated([("CumSum", ["x", "axis"], {})], values, {"axis": np.array(0)})
    np.testing.assert_array_equal(found, np.repeat([0, np.inf, np.nan], [1, 39, 30]))
