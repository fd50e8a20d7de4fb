"""Functions of functions compile, and values that are stored on the way are those that were named."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import tvm_rammer
from tests.functions import TARGET
from tvm_rammer.persistent_codegen.cpu.keep_values import MOST_NODES, keep_values
from tvm_rammer.vector_math import FORMULAS

LANES = 16


def applied(names: list[str], x: Expr) -> Expr:
    """Functions one after the other, as kernels have them."""
    for name in names:
        argument = tirx.Var("x", "float32")
        x = tirx.Let(argument, x, FORMULAS[name](argument))
    return x


def two_values(x: Expr) -> Expr:
    """Of which the second is large, and names the first, which is small, and a truth value."""
    half, positive, wave = tirx.Var("half", "float32"), tirx.Var("positive", "bool"), tirx.Var("wave", "float32")
    large = applied(["sin", "exp", "sin"], tirx.Select(positive, half, half + half))
    value = tirx.Let(positive, half > tirx.const(0.0, "float32"), tirx.Let(wave, large, wave * wave + half))
    return tirx.Let(half, x * tirx.const(0.5, "float32"), value)


def of_two_values(x: np.ndarray) -> np.ndarray:
    half = x / 2
    wave = np.sin(np.exp(np.sin(np.where(half > 0, half, x))))
    return wave * wave + half


def loop_over(value: Expr, x: tirx.Buffer, y: tirx.Buffer, i: tirx.Var, kind: tirx.ForKind) -> tirx.Stmt:
    zero = tirx.const(0, "int32")
    return tirx.For(i, zero, tirx.const(LANES, "int32"), kind, tirx.BufferStore(y, value, [i]))


def most_nodes(body: tirx.Stmt) -> int:
    """Nodes of the largest value that a name is bound to, with all names in it replaced."""
    sizes: dict[tirx.Var, int] = {}

    def of(expr: Expr) -> int:
        found = 0

        def let(node: tirx.Let) -> tvm_ffi.WalkResult:
            nonlocal found
            sizes[node.var] = of(node.value)
            found += sizes[node.var] + of(node.body)
            return tvm_ffi.WalkResult.SKIP

        def count(node: Expr) -> None:
            nonlocal found
            found += sizes.get(node, 1) if isinstance(node, tirx.Var) else 1

        tvm_ffi.structural_walk(expr, [(tirx.Let, let), (Expr, count)], order="pre")
        return found

    stores: list[tirx.BufferStore] = []
    tvm_ffi.structural_walk(body, (tirx.BufferStore, stores.append), order="pre")
    for store in stores:
        of(store.value)
    return max(sizes.values(), default=0)


def eight_sines(x: Expr) -> Expr:
    return applied(["sin"] * 8, x)


def of_eight_sines(x: np.ndarray) -> np.ndarray:
    for _ in range(8):
        x = np.sin(x)
    return x


CASES = {"sines": (eight_sines, of_eight_sines), "two values": (two_values, of_two_values)}


@pytest.mark.parametrize("kind", [tirx.ForKind.SERIAL, tirx.ForKind.VECTORIZED])
@pytest.mark.parametrize("case", CASES)
def test_large_values_are_stored_and_others_are_names(case: str, kind: tirx.ForKind) -> None:
    make, by_numpy = CASES[case]
    x, y = (tirx.decl_buffer((LANES,), "float32", name) for name in "xy")
    i = tirx.Var("i", "int32")
    body = loop_over(make(tirx.BufferLoad(x, [i])), x, y, i, kind)
    assert most_nodes(body) > 20 * MOST_NODES

    kept, arrays = keep_values(body)

    assert arrays
    assert most_nodes(kept) <= MOST_NODES
    func = tirx.PrimFunc([x, y], tirx.SeqStmt([*map(tirx.AllocBuffer, arrays), kept]))
    func = func.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    built = tvm.compile(tvm.IRModule({"main": func}), target=TARGET)
    values = np.linspace(-3, 3, LANES, dtype=np.float32)
    got = tvm.runtime.tensor(np.zeros(LANES, np.float32))
    built["main"](tvm.runtime.tensor(values), got)
    np.testing.assert_allclose(got.numpy(), by_numpy(values.astype(np.float64)), rtol=1e-5, atol=1e-6)


def test_single_functions_stay_as_they_are() -> None:
    x, y = (tirx.decl_buffer((LANES,), "float32", name) for name in "xy")
    i = tirx.Var("i", "int32")
    for name in ("sin", "tan", "exp", "log", "tanh", "erf", "asin", "atanh"):
        body = loop_over(applied([name], tirx.BufferLoad(x, [i])), x, y, i, tirx.ForKind.VECTORIZED)
        kept, arrays = keep_values(body)
        assert kept.same_as(body), name
        assert not arrays, name


@I.ir_module
class Nested:
    @T.prim_func(private=True, s_tir=True)
    def function(x: T.Buffer((5,), "float32"), y: T.Buffer((4, 24), "float32")) -> None:
        for i0, i1 in T.grid(4, 24):
            with T.sblock("value"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                y[v0, v1] = T.sin(T.log(T.log(x[v0]))) + T.tan(T.sin(T.cos(x[v1 % 5])))

    @T.prim_func(private=True, s_tir=True)
    def statements(x: T.Buffer((4, 24), "float32"), y: T.Buffer((4, 24), "float32")) -> None:
        for i0, i1 in T.grid(4, 24):
            with T.sblock("value"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                once: T.let = T.sin(x[v0, v1])
                twice: T.let = T.sin(once)
                thrice: T.let = T.sin(twice)
                y[v0, v1] = thrice + twice * once

    @R.function
    def main(x: R.Tensor((5,), "float32")):
        cls = Nested
        with R.dataflow():
            y = R.call_tir(cls.function, (x,), out_ty=R.Tensor((4, 24), "float32"))
            z = R.call_tir(cls.statements, (y,), out_ty=R.Tensor((4, 24), "float32"))
            R.output(z)
        return z


def test_functions_of_functions_compile() -> None:
    x = np.array([3, 4, 5, 6, 7], np.float32)
    wide = x.astype(np.float64)
    y = np.sin(np.log(np.log(wide[:4, None]))) + np.tan(np.sin(np.cos(wide[np.arange(24) % 5])))
    once, twice, thrice = np.sin(y), np.sin(np.sin(y)), np.sin(np.sin(np.sin(y)))

    got = tvm_rammer.compile(Nested, threads=2)(x)

    np.testing.assert_allclose(got, thrice + twice * once, rtol=1e-5)
