"""NaN, division by zero, shifts beyond the width: whatever the values are, the result is defined."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import tirx as T

import tvm_rammer
from tests.emulation.models import Way, emulated_model
from tests.emulation.programs import plan, run_all
from tests.functions import relax_module
from tests.hostile import by_onnxruntime, model, results
from tvm_rammer.define_arithmetic import define_arithmetic

NAN = np.nan
VALUES = np.array(
    [NAN, -NAN, np.inf, -np.inf, -0.0, 0.0, -1, 2, -1000, 1000, 1e-40, -1e-40, 0.5, 3, -3, NAN], "float32"
)
OTHERS = np.roll(VALUES, 3)


ELEMENTWISE = [
    *((op, ["x"], {}) for op in ("Relu", "HardSigmoid", "Elu", "Celu", "Selu", "LeakyRelu", "Sign", "HardSwish")),
    *((op, ["x"], {}) for op in ("ThresholdedRelu", "Softplus", "Gelu", "Reciprocal", "Erf")),
    *((op, ["x", "y"], {}) for op in ("Min", "Max", "Div", "PRelu", "Less", "Equal")),
    ("Max", ["x", "y", "half", "x"], {}),
    ("Min", ["half", "x"], {}),
    ("Clip", ["x", "low", "half"], {}),
    ("Gelu", ["x"], {"approximate": "tanh"}),
]


def test_operators_let_nan_through_as_onnx_runtime_does():
    arrays = {"x": VALUES, "y": np.where(VALUES == 0, 1, OTHERS).astype("float32")}
    constants = {"half": np.float32([0.5]).reshape(()), "low": np.float32([-1]).reshape(())}
    proto = model(ELEMENTWISE, arrays, constants)
    for (op, names, _), got, want in zip(
        ELEMENTWISE, results(proto, arrays), by_onnxruntime(proto, arrays), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=f"{op} of {names}")


def test_what_is_not_less_may_be_nan():
    arrays = {"x": VALUES, "y": OTHERS}
    nodes = [("Less", ["x", "y"], {}), ("Not", ["y0"], {}), ("Equal", ["x", "y"], {}), ("Not", ["y2"], {})]
    for got, want in zip(
        results(model(nodes, arrays), arrays), by_onnxruntime(model(nodes, arrays), arrays), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_a_constant_zero_meets_nan_and_infinities():
    arrays, constants = {"x": VALUES}, {"zero": np.float32([0]).reshape(())}
    calls = [("Mul", ["x", "zero"]), ("Mul", ["zero", "x"]), ("Div", ["x", "zero"]), ("Div", ["zero", "x"])]
    proto = model([(op, names, {}) for op, names in calls], arrays, constants)
    for call, got, want in zip(calls, results(proto, arrays), by_onnxruntime(proto, arrays), strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(call))


def test_a_row_is_divided_by_numbers_near_to_zero():
    divisors = np.array([1e-40, -1e-40, 0.0, 1.4e-45, np.inf, NAN, 1e-38, 3e38, 2e-38, 2], "float32")[:, None]
    row = np.array([0, -0.0, 1e-40, 3e-39, 1, -2, np.inf, NAN, 1e-30, 1e38, 3e38, 1.4e-45], "float32")
    arrays = {"x": np.tile(row, (len(divisors), 1)), "y": divisors}
    (got,) = results(model([("Div", ["x", "y"], {})], arrays), arrays)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, arrays["x"] / divisors, rtol=1e-6, atol=2e-45)


def test_tests_of_numbers_beside_branches_compile():
    """LLVM takes exponential time for a chain of tests for NaN, if it knows them as such, around branches."""

    @T.prim_func(private=True, s_tir=True)
    def chain(x: T.Buffer((4, 1), "float32"), y: T.Buffer((3, 4), "float32")):
        for i, j, k, n in T.grid(3, 4, 16, 1):
            with T.sblock("most"):
                a, b, c, d = T.axis.remap("SSRR", [i, j, k, n])
                with T.init():
                    y[a, b] = T.float32(-10000.0)
                y[a, b] = T.max(
                    y[a, b],
                    T.Select(
                        c % 2 == d,
                        x[3 - b, d],
                        T.min(T.if_then_else(b * 3 + c < 4, x[b * 3 + c, 0], T.float32(1.0)), x[b, 0]),
                    ),
                )

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 1), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(
                relax.call_tir(builder.add_func(chain, "chain"), x, relax.TensorType((3, 4), "float32"))
            )
        builder.emit_func_output(y)
    given = np.array([0.5, 4, -2, 3], "float32")
    got = tvm_rammer.compile(builder.get())(given[:, None])
    least = [[min(given[3 * b + c] if 3 * b + c < 4 else 1, given[b]) for c in range(1, 16, 2)] for b in range(4)]
    want = np.array([max(given[3 - b], *least[b]) for b in range(4)], "float32")
    np.testing.assert_array_equal(np.asarray(got), np.tile(want, (3, 1)))


def test_a_number_becomes_one_of_bfloat16_though_it_is_used_as_float32():
    """TVM computes bfloat16 in float32, where the two casts would cancel out."""
    x = np.array([1.00390625, 1.01171875, 3.4028235e38, -3.4028235e38, np.inf, NAN, 1e-40, 1.0039063], "float32")
    nodes = [("Cast", ["x"], {"to": 16}), ("Cast", ["y0"], {"to": 1})]
    proto = model(nodes, {"x": x})
    del proto.graph.output[0]
    np.testing.assert_array_equal(results(proto, {"x": x}), by_onnxruntime(proto, {"x": x}))


def test_what_is_rounded_to_bfloat16_may_hold_functions_of_functions():
    """What is rounded is repeated; names that are bound in it would be bound twice, which ended the process."""
    x = np.linspace(-4, 4, 30).astype("float32")
    nodes = [
        ("Cast", ["x"], {"to": 16}),
        ("HardSwish", ["y0"], {}),
        ("Sinh", ["y1"], {}),
        ("Tanh", ["y2"], {}),
        ("Cast", ["y3"], {"to": 1}),
    ]
    proto = model(nodes, {"x": x})
    del proto.graph.output[:4]
    (got,) = results(proto, {"x": x})
    swish = x * np.clip(x / 6 + 0.5, 0, 1)
    np.testing.assert_allclose(got, np.tanh(np.sinh(swish)), rtol=0.05, atol=0.02)


SOURCE = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def f(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 6), "{dtype}")):
        for i, j in T.grid(4, 6):
            with T.sblock("y"):
                a, b = T.axis.remap("SS", [i, j])
                y[a, b] = {value}

    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.f, (x,), out_ty=R.Tensor((4, 6), "{dtype}"))
            R.output(y)
        return y
"""
POWER, OTHER = "T.exp(T.Cast('float32', b))", "T.tanh(x[a, b])"
WHOLE, DIVISOR = f"T.Cast('int32', {POWER})", f"T.Cast('int32', {OTHER}) + 2"


@pytest.mark.parametrize(
    ("value", "dtype", "compute"),
    [
        (f"T.min({POWER}, {OTHER})", "float32", np.minimum),
        (f"T.max({POWER}, {OTHER})", "float32", np.maximum),
        (f"T.floordiv({WHOLE}, {DIVISOR})", "int32", lambda p, t: np.floor_divide(p.astype(int), t.astype(int) + 2)),
        (f"T.floormod({WHOLE}, {DIVISOR})", "int32", lambda p, t: np.mod(p.astype(int), t.astype(int) + 2)),
        (f"T.floordiv({DIVISOR}, {WHOLE})", "int32", lambda p, t: np.floor_divide(t.astype(int) + 2, p.astype(int))),
    ],
)
def test_what_is_used_several_times_may_bind_names(value, dtype, compute):
    """The formula of exp binds names. TVM's analysis refuses an expression that binds one to two values."""
    names = {"I": tvm.script.ir, "T": tvm.script.tirx, "R": tvm.script.relax}
    module = tvm.script.from_source(SOURCE.format(value=value, dtype=dtype), extra_vars=names)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")
    power = np.exp(np.tile(np.arange(6, dtype="float32"), (4, 1)))
    got = np.asarray(tvm_rammer.compile(module)(x))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, compute(power, np.tanh(x)), rtol=1e-5)


def test_a_flat_index_is_not_repeated_by_the_sizes_that_divide_it():
    """A size that is not known before is 0 or more, so nothing but 0 is to be ruled out."""

    @T.prim_func(s_tir=True)
    def func(x: T.handle, y: T.handle):
        n = T.int64()
        m = T.int64()
        a = T.match_buffer(x, (n, m), "float32")
        b = T.match_buffer(y, (n, m), "int64")
        for i, j in T.grid(n, m):
            with T.sblock("b"):
                v, w = T.axis.remap("SS", [i, j])
                b[v, w] = T.Cast("int64", a[v, w]) // n // m % n

    defined = define_arithmetic(func.with_attr("global_symbol", "f"), "llvm")
    assert defined.script().count("T.Cast") == 1
    module = tvm.compile(tvm.IRModule({"f": defined}), target={"kind": "llvm"})
    x, y = np.array([[100.0, -7.0], [55.0, 12.0], [3.0, 41.0]], "float32"), tvm.runtime.empty((3, 2), "int64")
    module["f"](tvm.runtime.tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), x.astype(int) // 3 // 2 % 3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_text_for_a_gpu_lets_nan_through(dtype):
    """CUDA's own functions give the number of two operands of which one is NaN."""

    def graph(x, y):
        return relax.op.add(relax.op.nn.relu(x), relax.op.minimum(relax.op.maximum(x, y), relax.const(2.0, dtype)))

    module = relax_module([(16,), (16,)], graph, dtype=dtype)
    x, y = VALUES.astype(dtype), OTHERS.astype(dtype)
    got = run_all(plan(module, 4), {"x0": x, "x1": y})
    want = np.maximum(x, 0) + np.minimum(np.maximum(x, y), 2)
    (sums,) = (array for name, array in got.items() if name not in ("x0", "x1"))
    np.testing.assert_allclose(sums, want)


HALVES = np.array([np.inf, -np.inf, NAN, -1.5, 0, 0.5, 2.5, 1000])


@pytest.mark.parametrize(("dtype", "op"), [("bfloat16", "IsInf"), ("float16", "IsInf"), ("float16", "QuantizeLinear")])
def test_the_text_for_a_gpu_has_infinity_of_half_precision(dtype, op):
    """TVM writes `inff` for infinity of bfloat16. Numbers are rounded by a function of halves."""
    numbers = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    quantises = op == "QuantizeLinear"
    x = (HALVES[3:-1] if quantises else HALVES).astype(numbers)
    constants = {"scale": np.array(1, numbers)} if quantises else {}
    proto = model([(op, ["x", *constants], {})], {"x": x}, constants)
    want = np.maximum(np.rint(x), 0) if quantises else np.isinf(x)
    (got,) = emulated_model(proto, Way(units=2)).run({"x": x}, 0)
    np.testing.assert_array_equal(got, want)
