"""Functions as arithmetic: against float64, and where float32 ends."""

import math
from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm.relax import op

from tests.functions import TARGET, fused, run
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.generic.cost import CALL_CYCLES, generic_us
from tvm_rammer.rkernel_gen.cpu.generic.rule import GenericRule
from tvm_rammer.rkernel_gen.tiling import Function
from tvm_rammer.vector_math import vector_math

BITS = np.random.default_rng(0).integers(0, 1 << 32, 300_000, dtype=np.uint32).view("float32")
BITS = BITS[np.isfinite(BITS)]  # numbers of all sizes
SIZES, TURNS = np.abs(BITS), np.concatenate([BITS, np.pi / 2 * np.arange(-20_000, 20_000)])
UNIT = np.concatenate([np.linspace(-1, 1, 200_001), BITS[np.abs(BITS) < 1]])
FUNCTIONS = {
    "exp": (op.exp, np.exp, np.linspace(-87.3, 88.7, 200_000)),
    "tanh": (op.tanh, np.tanh, np.linspace(-20, 20, 200_000)),
    "sigmoid": (op.sigmoid, lambda x: 1 / (1 + np.exp(-x)), np.linspace(-80, 80, 200_000)),
    "erf": (op.erf, np.vectorize(math.erf), np.linspace(-6, 6, 200_000)),
    "log": (op.log, np.log, np.concatenate([SIZES, np.linspace(0.5, 2, 200_000)])),
    "sin": (op.sin, np.sin, TURNS),
    "cos": (op.cos, np.cos, TURNS),
    "tan": (op.tan, np.tan, TURNS),
    "asin": (op.asin, np.arcsin, UNIT),
    "acos": (op.acos, np.arccos, UNIT),
    "atan": (op.atan, np.arctan, BITS),
    "asinh": (op.asinh, np.arcsinh, BITS),
    "acosh": (op.acosh, np.arccosh, np.concatenate([SIZES, 1 + UNIT**2])),
    "atanh": (op.atanh, np.arctanh, UNIT),
    "rsqrt": (op.rsqrt, lambda x: 1 / np.sqrt(x), SIZES[SIZES > 1e-30]),
}
ERROR = 4e-7
EDGES = np.array(
    [0.0, -0.0, 1e-30, -1e-8, 1e-40, np.inf, -np.inf, 1, -1, 0.5, 1.5, -1.5, 200, -200, 88.72, 88.7228, 88.73, -87.4,
     -103, 2.0**53, 2.0**82, 2.0**111, np.finfo("float32").max, np.finfo("float32").min, np.nan],
    "float32",
)  # fmt: skip


def evaluate(name, values):
    func = vector_math(fused([values.shape], FUNCTIONS[name][0]))
    return run(func, [values, np.zeros_like(values)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name):
    _, exact, chosen = FUNCTIONS[name]
    values = np.concatenate([chosen, np.random.default_rng(0).normal(0, 0.1, 100_000)]).astype("float32")
    with np.errstate(all="ignore"):
        want = exact(values.astype("float64"))
        known = (np.abs(want) < np.finfo("float32").max) & (np.abs(want) >= 2.0**-126)
        error = np.abs(evaluate(name, values)[known] - want[known]) / np.abs(want[known])
    assert known.sum() > 100_000
    assert error.max() < ERROR


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_right_at_the_edges(name):
    values = np.tile(EDGES, 4)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name][1](values.astype("float64")).astype("float32")
    got = evaluate(name, values)
    np.testing.assert_allclose(got, want, rtol=ERROR, atol=2**-126)
    if name in ("sin", "tan", "asin", "atan", "asinh", "atanh"):
        zeros = values == 0
        assert np.array_equal(np.signbit(got[zeros]), np.signbit(values[zeros]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_of_all_sizes_and_signs_are_nan_where_the_function_is_undefined(name):
    sizes = np.concatenate([2.0 ** np.arange(-126, 128), np.geomspace(1e-37, 3e38, 10_000)]).astype("float32")
    sizes = np.concatenate([sizes, np.nextafter(sizes, np.float32(0)), np.nextafter(sizes, np.float32(3e38))])
    values = np.concatenate([sizes, -sizes])
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name][1](values.astype("float64"))
    got = evaluate(name, values)
    odd = values[np.isnan(got) != np.isnan(want)]
    assert not odd.size, f"{odd.size} numbers, {odd[:3]} among them"


def test_the_nearest_integer_is_the_even_one_of_two():
    values = np.concatenate([BITS, np.arange(-10, 10, 0.25), 2.0**23 + np.arange(-9, 9) / 2, EDGES]).astype("float32")
    func = vector_math(fused([values.shape], op.round))
    np.testing.assert_array_equal(run(func, [values, np.zeros_like(values)]), np.rint(values))


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_classes_of_numbers(name):
    values = np.concatenate([BITS, EDGES, np.array([0x7F800001, 0xFFFFFFFF], "uint32").view("float32")])
    func = vector_math(fused([values.shape], getattr(op, name)))
    assert f"T.{name}(" not in func.script()
    np.testing.assert_array_equal(run(func, [values, np.zeros(values.shape, bool)]), getattr(np, name)(values))


@pytest.mark.parametrize("name", [*FUNCTIONS, "round", "isnan"])
def test_a_function_becomes_vectors(name):
    """TVM writes a loop over the elements of what it makes no vectors of."""
    function = Function("f", fused([(64,)], getattr(op, name)), replace(host_cpu(), vector_bytes=32))
    kernel = GenericRule().build(function, {"parts": 1, "simd": 8})
    passes = [
        tvm.s_tir.transform.ConvertBlocksToOpaque(), tvm.s_tir.transform.LowerOpaqueBlock(),
        tvm.tirx.transform.VectorizeLoop(),
    ]  # fmt: skip
    with TARGET:
        text = tvm.transform.Sequential(passes)(tvm.IRModule({"main": kernel.func})).script()
    assert "x8" in text
    assert text.count("for ") == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_call_is_left(name):
    func = vector_math(fused([(16,)], FUNCTIONS[name][0]))
    assert f"T.{name}(" not in func.script()


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.0, 1.5, 2.75, 4.0])
def test_powers_of_quarters_are_square_roots(exponent):
    values = np.concatenate([[0.0, np.inf, -np.inf], np.geomspace(1e-9, 1e9, 61)]).astype("float32")
    func = vector_math(fused([values.shape], lambda x: op.power(x, tvm.relax.const(exponent, "float32"))))
    assert "T.pow(" not in func.script()
    with np.errstate(over="ignore"):
        want = np.array([math.pow(value, exponent) for value in values]).astype("float32")
    np.testing.assert_allclose(run(func, [values, np.zeros_like(values)]), want, rtol=3e-7)


def test_a_softmax_has_numbers_below_the_least_one_with_all_digits():
    """Their logarithms are finite then."""
    x = -np.linspace(0, 120, 1201, dtype="float32")[None]
    func = fused([x.shape], lambda x: op.nn.softmax(x))
    assert "T.exp(" not in vector_math(func).script()
    want = np.exp(x.astype("float64")) / np.exp(x.astype("float64")).sum()
    got = run(vector_math(func), [x, np.zeros_like(x)])
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=2.0**-149)
    assert np.array_equal(got > 0, want.astype("float32") > 0)


@pytest.mark.parametrize("divisor", [np.inf, -np.inf, np.nan, 3e38, 1e-44, 0.0])
def test_quotients_by_extreme_constants(divisor):
    """A product with a reciprocal of 0 would be 0, even of NaN and infinity."""
    values = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -3e38], "float32")
    func = vector_math(fused([values.shape], lambda x: op.divide(x, tvm.relax.const(divisor, "float32"))))
    with np.errstate(all="ignore"):
        want = values / np.float32(divisor)
    np.testing.assert_allclose(run(func, [values, np.zeros_like(values)]), want, rtol=1e-6)


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


CHOICES = {
    "pad": lambda x: op.nn.pad(x, (1, 1, 1, 1)),
    "concatenation": lambda x: op.concat([x, x], 0),
    "triangle": lambda x: op.tril(x),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_predicted_to_take_no_call(name):
    device = host_cpu()
    chosen, plain = (fused([(64, 256)], build) for build in (CHOICES[name], op.nn.relu))
    times = [generic_us(func, 1, 8, (64, 256), device) for func in (chosen, plain)]
    assert times[0] < 5 * times[1]


@pytest.mark.parametrize("name", [*FUNCTIONS, "round", "floor", "abs", "isnan", "isinf", "isfinite"])
def test_a_function_is_predicted_to_take_less_than_a_call_of_each_element(name):
    func = fused([(64, 256)], getattr(op, name))
    assert generic_us(func, 1, 8, (64, 256), host_cpu()) < 64 * 256 * CALL_CYCLES / (host_cpu().clock_ghz * 1e3)


def test_quotients_and_roots_are_predicted_to_take_longer_than_sums():
    device, shape = host_cpu(), (64, 256)
    sums, quotients = (fused([shape, shape], build) for build in (op.add, op.divide))
    roots, rectified = (fused([shape], build) for build in (op.sqrt, op.nn.relu))
    for costly, plain in ((quotients, sums), (roots, rectified)):
        assert generic_us(costly, 1, 8, shape, device) > 1.5 * generic_us(plain, 1, 8, shape, device)
