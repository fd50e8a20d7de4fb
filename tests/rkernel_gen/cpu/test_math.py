"""Functions as arithmetic: against float64, and where float32 ends."""

import math

import numpy as np
import pytest
import tvm
from tvm.relax import op

from tests.functions import fused, run
from tvm_rammer.rkernel_gen.cpu.math import vector_math

FUNCTIONS = {
    "exp": (op.exp, np.exp, (-87.3, 88.7)),
    "tanh": (op.tanh, np.tanh, (-20, 20)),
    "sigmoid": (op.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (-80, 80)),
    "erf": (op.erf, np.vectorize(math.erf), (-6, 6)),
}
ERROR = 4e-7
EDGES = np.array(
    [0.0, -0.0, 1e-30, -1e-8, np.inf, -np.inf, 200, -200, 88.72, 88.7228, 88.73, -87.4, -103, np.nan], "float32"
)


def evaluate(name, values):
    func = vector_math(fused([values.shape], FUNCTIONS[name][0]))
    return run(func, [values, np.zeros_like(values)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name):
    _, exact, (low, high) = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    values = np.concatenate([np.linspace(low, high, 200_000), rng.normal(0, 0.1, 100_000)]).astype("float32")
    want = exact(values.astype("float64"))
    error = np.abs(evaluate(name, values) - want) / np.abs(want)
    assert error.max() < ERROR


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name):
    values = np.tile(EDGES, 4)
    with np.errstate(over="ignore"):
        want = FUNCTIONS[name][1](values.astype("float64")).astype("float32")
    np.testing.assert_allclose(evaluate(name, values), want, rtol=ERROR, atol=2**-126)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_call_is_left(name):
    func = vector_math(fused([(16,)], FUNCTIONS[name][0]))
    assert f"T.{name}(" not in func.script()


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.0, 1.5, 2.75, 4.0])
def test_powers_of_quarters_are_square_roots(exponent):
    values = np.concatenate([[0.0, np.inf, 1.0], np.geomspace(1e-9, 1e9, 61)]).astype("float32")
    func = vector_math(fused([values.shape], lambda x: op.power(x, tvm.relax.const(exponent, "float32"))))
    assert "T.pow(" not in func.script()
    with np.errstate(over="ignore"):
        want = (values.astype("float64") ** exponent).astype("float32")
    np.testing.assert_allclose(run(func, [values, np.zeros_like(values)]), want, rtol=3e-7)


def test_other_powers_are_left_alone():
    func = fused([(16,)], lambda x: op.power(x, tvm.relax.const(0.7, "float32")))
    tvm.ir.assert_structural_equal(vector_math(func), func)


def test_other_types_and_functions_are_left_alone():
    x = tvm.relax.Var("x", tvm.relax.TensorType((8,), "float64"))
    builder = tvm.relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit_te(tvm.topi.exp, x))
    (double,) = [f for f in builder.get().functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    for func in (double, fused([(16,)], op.sqrt)):
        tvm.ir.assert_structural_equal(vector_math(func), func)
