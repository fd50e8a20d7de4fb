"""Vectors of conditions: C takes their types, and the results are right."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import tirx as T

from tests.emulation.programs import H200
from tests.functions import fused
from tests.rkernel_gen.cuda.operators import check, emulated
from tvm_rammer.rkernel_gen.cuda.elementwise import ELEMENTWISE_RULE
from tvm_rammer.rkernel_gen.tiling import Function

SHAPE = (6, 64)


def kernels_of(func):
    """Three kernels of a function, of vectors where there are any."""
    function = Function("function", func, H200)
    tilings = sorted(ELEMENTWISE_RULE.tilings(function), key=lambda tiling: -tiling["vector_width"])
    return tilings[0]["vector_width"], [ELEMENTWISE_RULE.build(function, dict(t.choices)) for t in tilings[:3]]


@T.prim_func(s_tir=True)
def by_rows(x: T.Buffer(SHAPE, "float32"), y: T.Buffer(SHAPE, "float32"), z: T.Buffer(SHAPE, "float32")):
    for i, j in T.grid(*SHAPE):
        with T.sblock("chosen"):
            row, column = T.axis.remap("SS", [i, j])
            z[row, column] = T.Select(row % 3 == 1, x[row, column], y[row, column])


@T.prim_func(s_tir=True)
def by_elements(x: T.Buffer(SHAPE, "float32"), y: T.Buffer(SHAPE, "float32"), z: T.Buffer(SHAPE, "float32")):
    for i, j in T.grid(*SHAPE):
        with T.sblock("chosen"):
            row, column = T.axis.remap("SS", [i, j])
            z[row, column] = T.Select(
                T.Not(T.Cast("bool", x[row, column] + y[row, column])), x[row, column], y[row, column]
            )


@pytest.mark.parametrize("func", [by_rows, by_elements])
def test_a_condition_may_be_shared_or_negated(func):
    width, kernels = kernels_of(func)
    assert width == 4
    check(func, kernels)


@pytest.mark.parametrize("shape", [SHAPE, (6, 1)])
def test_conditions_in_memory_have_a_byte_each(shape):
    target = tvm.target.Target(H200.target_config())
    dtypes = ["bool", "float32", "float32"]
    func = fused([shape, SHAPE, SHAPE], lambda *args: relax.op.where(*args), target, dtype=dtypes)
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape) < 0.5, rng.random(SHAPE, "float32"), rng.random(SHAPE, "float32")]
    for (got,) in emulated(func, kernels_of(func)[1], arrays):
        np.testing.assert_array_equal(got, np.where(*arrays))
