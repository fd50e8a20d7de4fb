"""Sums along what follows one another are summed up in lanes, and are nearer to what they should be."""

import numpy as np
import pytest
import tvm
from tvm import te, topi

from tests.relay_passes.models import random
from tvm_rammer.relay_passes.empty_reductions import StartEmptyReductions
from tvm_rammer.relay_passes.passes.sums.lanes import SumInLanes

from ..elements.functions import module_of, run

SUMS = {"sum": (topi.sum, np.sum), "max": (topi.max, np.max), "min": (topi.min, np.min)}


@pytest.mark.parametrize("register", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("kind", SUMS)
def test_sums_of_every_type(kind, dtype, register):
    ours, numpys = SUMS[kind]
    mod = module_of(lambda x: ours(x, axis=[1, 2]), (("n", 7, 61), dtype))
    made = SumInLanes(register)(mod)
    assert not made.same_as(mod)
    for rows in (0, 1, 3):
        x = (random(rows, 7, 61) * 100).astype(dtype)
        np.testing.assert_allclose(run(made, [x]), numpys(x, axis=(1, 2)), rtol=1e-5)


@pytest.mark.parametrize(
    ("axes", "shape"),
    [([1], (5, "n")), ([0, 1], ("n", 3)), ([0, 2], (2, "n", 40)), ([0, 1, 2], ("n", 3, 129)), ([1], ("n", 16))],
)
def test_sums_along_any_axes(axes, shape):
    mod = module_of(lambda x: topi.sum(x, axis=axes), (shape, "float32"))
    made = SumInLanes(16)(mod)
    assert not made.same_as(mod)
    for rows in (0, 1, 15, 70):
        x = random(*(rows if n == "n" else n for n in shape))
        np.testing.assert_allclose(run(made, [x]), x.sum(tuple(axes)), rtol=1e-5, atol=1e-5)


def test_the_last_of_many_numbers_count():
    """Seventeen million times 0.1: one after another they add up to 15 % more than that."""
    mod = module_of(lambda x: topi.sum(x, axis=[0, 1]), (("n", 4096), "float32"))
    x = np.full((4096, 4096), 0.1, "float32")
    sequential, lanes = (float(run(m, [x])) for m in (StartEmptyReductions()(mod), SumInLanes(64)(mod)))
    want = x.astype("float64").sum()
    assert abs(lanes - want) < 1e-3 * want
    assert abs(sequential - want) > 1e-1 * want


def strided(x):
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, x.shape[1] - 1 - k], k))


def of_columns(x):
    return topi.sum(x, axis=0)


def powers(x):
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0],), lambda i: te.sum(te.exp(x[i, k]), k))


@pytest.mark.parametrize(
    ("compute", "dtype"),
    [(strided, "float32"), (of_columns, "float32"), (powers, "float32"), (strided, "float16")],
    ids=["backwards", "of columns", "of calls", "of half precision"],
)
def test_what_lanes_do_not_suit_stays(compute, dtype):
    mod: tvm.IRModule = module_of(compute, (("n", 64), dtype))
    assert SumInLanes(64)(mod).same_as(mod)


def test_short_sums_stay():
    mod = module_of(lambda x: topi.sum(x, axis=1), (("n", 3), "float32"))
    assert SumInLanes(64)(mod).same_as(mod)
