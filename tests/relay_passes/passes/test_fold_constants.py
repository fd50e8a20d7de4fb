"""What depends on constants only is computed at compile time, in one compilation."""

import math

import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_rammer.relay_passes import FoldConstants

from ..models import calls, op_names, random
from .test_fold_batchnorm import build


def folded(mod):
    return FoldConstants()(mod)


def test_reshapes_and_transposes_need_no_compiler(run, monkeypatch):
    monkeypatch.setattr(fold_constants_module(), "_module_of", None)  # would fail

    def body(b, x):
        w = b.emit(relax.op.permute_dims(relax.const(random(2, 3)), [1, 0]))
        w = b.emit(relax.op.expand_dims(w, 0))
        return b.emit(relax.op.add(x, b.emit(relax.op.astype(b.emit(relax.op.reshape(w, (3, 2))), "float32"))))

    mod = folded(build((3, 2), body))
    assert op_names(mod) == ["add"]
    x = random(3, 2, seed=1)
    np.testing.assert_allclose(run(mod, x), x + random(2, 3).T)


def test_weights_that_several_products_transpose_are_one_constant(run):
    """Each step of an unrolled layer would read a copy of its own, from memory, where the steps share a cache."""

    def body(b, x):
        weights = relax.const(random(3, 3))
        for axes in ([1, 0], [1, 0], None, [0, 1]):
            x = b.emit(relax.op.matmul(x, b.emit(relax.op.permute_dims(weights, axes))))
        return x

    mod = folded(build((2, 3), body))
    found = [call.args[1] for call in calls(mod)]
    assert found[0].same_as(found[1]) and not found[0].same_as(found[3])
    x, w = random(2, 3, seed=1), random(3, 3)
    np.testing.assert_allclose(run(mod, x), x @ w.T @ w.T @ w.T @ w, rtol=1e-5, atol=1e-6)


def fold_constants_module():
    import sys

    return sys.modules["tvm_rammer.relay_passes.passes.fold_constants"]


def test_other_operators_share_one_compilation(run, monkeypatch):
    compiled = []
    original = tvm.compile
    monkeypatch.setattr(tvm, "compile", lambda *args, **kwargs: compiled.append(1) or original(*args, **kwargs))

    def body(b, x):
        c = relax.const(random(4))
        a = b.emit(relax.op.exp(c))
        parts = b.emit(relax.op.split(a, 2))
        s = b.emit(relax.op.concat([b.emit(relax.TupleGetItem(parts, 1)), b.emit(relax.TupleGetItem(parts, 0))]))
        m = b.emit(relax.op.multiply(s, b.emit(relax.op.reshape(a, (4,)))))
        return b.emit(relax.op.add(x, m))

    mod = folded(build((4,), body))
    assert op_names(mod) == ["add"] and len(compiled) == 1
    monkeypatch.undo()
    e = np.exp(random(4))
    np.testing.assert_allclose(run(mod, np.zeros(4, "float32")), np.roll(e, 2) * e, rtol=1e-5)


def test_legalized_calls_are_folded_too():
    def body(b, x):
        return b.emit(relax.op.add(x, b.emit(relax.op.exp(relax.const(random(4))))))

    mod = relax.transform.LegalizeOps()(build((4,), body))
    assert op_names(mod) == ["tir_exp", "add"]
    assert op_names(folded(mod)) == ["add"]


def test_lookups_in_constants_are_folded_without_a_warning(run, capfd):
    """TVM's own form of a lookup warns that the indices might lie outside."""

    def body(b, x):
        places = relax.op.take(relax.const(random(4, 3)), relax.const(np.array([2, 0]), "int64"), axis=0, mode="fast")
        return b.emit(relax.op.add(x, b.emit(places)))

    mod = folded(build((2, 3), body))
    assert op_names(mod) == ["add"]
    np.testing.assert_allclose(run(mod, np.zeros((2, 3), "float32")), random(4, 3)[[2, 0]])
    assert capfd.readouterr().err == ""


def test_a_constant_result(run):
    mod = folded(build((1,), lambda b, x: b.emit(relax.op.exp(relax.const(random(3))))))
    assert op_names(mod) == []
    np.testing.assert_allclose(run(mod, random(1)), np.exp(random(3)), rtol=1e-5)


def test_what_reads_inputs_stays():
    mod = build((4,), lambda b, x: b.emit(relax.op.add(x, relax.const(random(4)))))
    assert folded(mod).same_as(mod)


def test_what_would_grow_large_stays(monkeypatch):
    monkeypatch.setattr(fold_constants_module(), "LIMIT_BYTES", 1 << 10)

    def body(b, x):
        return b.emit(relax.op.add(x, b.emit(relax.op.broadcast_to(relax.const(random(1)), (1000,)))))

    assert op_names(folded(build((1000,), body))) == ["broadcast_to", "add"]


def test_calls_that_are_not_understood_stay():
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float32")):
            a = R.call_packed("mine.random", R.const([1.0, 2.0]), ty_args=R.Tensor((2,), "float32"))
            b = R.call_dps_packed("mine.other", (R.const([1.0, 2.0]),), out_ty=R.Tensor((2,), "float32"))
            return R.add(R.add(a, b), x)

    assert folded(Mod).same_as(Mod)


def test_scheduled_functions_of_another_device_stay():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def twice(a: T.Buffer((2,), "float32"), b: T.Buffer((2,), "float32")):
            T.func_attr({"tirx.is_scheduled": True})
            for i in range(2):
                b[i] = a[i] * T.float32(2)

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Mod
            with R.dataflow():
                y = R.call_tir(cls.twice, (R.const([1.0, 2.0]),), out_ty=R.Tensor((2,), "float32"))
                z = R.add(x, y)
                R.output(z)
            return z

    assert op_names(folded(Mod)) == ["twice", "add"]


def test_what_cannot_be_compiled_stays(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(tvm, "compile", fail)

    def body(b, x):
        return b.emit(relax.op.add(x, b.emit(relax.op.exp(relax.const(random(4))))))

    assert op_names(folded(build((4,), body))) == ["exp", "add"]


def test_a_constant_that_does_not_compile_disables_no_other(run, monkeypatch):
    original = tvm.compile

    def compile_all_but_erf(module, *args, **kwargs):
        if any(name.name_hint.startswith("erf") or "erf" in str(f) for name, f in module.functions_items()):
            raise RuntimeError("no erf on this machine")
        return original(module, *args, **kwargs)

    def body(b, x):
        total = x
        for n, make in enumerate((relax.op.exp, relax.op.erf, relax.op.tanh, relax.op.sqrt)):
            total = b.emit(
                relax.op.add(total, b.emit(relax.op.nn.relu(b.emit(make(relax.const(abs(random(4, seed=n))))))))
            )
        return total

    monkeypatch.setattr(tvm, "compile", compile_all_but_erf)
    mod = folded(build((4,), body))
    monkeypatch.undo()
    assert op_names(mod) == ["add", "erf", "nn.relu", "add", "add", "add"]
    x = random(4, seed=9)
    arrays = [abs(random(4, seed=n)).astype("float64") for n in range(4)]
    erf = np.array([math.erf(v) for v in arrays[1]])
    want = x + np.exp(arrays[0]) + erf + np.tanh(arrays[2]) + np.sqrt(arrays[3])
    np.testing.assert_allclose(run(mod, x), want, rtol=1e-5)


def test_arithmetic_of_indices_needs_no_compiler(monkeypatch):
    monkeypatch.setattr(fold_constants_module(), "_module_of", None)  # would fail

    def body(b, x):
        index = relax.const(np.array(-1, "int64"))
        size = b.emit(relax.op.take(relax.const(np.array([3, 2], "int64")), relax.const(np.array(0, "int64")), axis=0))
        below = b.emit(relax.op.less(index, relax.const(np.array(0, "int64"))))
        index = b.emit(relax.op.where(below, b.emit(relax.op.add(index, size)), index))
        return b.emit(relax.op.take(x, index, axis=0))

    mod = folded(build((3, 2), body))
    assert op_names(mod) == ["take"]
    (call,) = [b.value for b in mod["main"].body.blocks[0].bindings if isinstance(b.value, tvm.ir.Call)]
    assert call.args[1].value.numpy() == 2


def test_indices_that_lie_outside_are_not_followed():
    """They would read, or write, elsewhere in this process."""

    def body(b, x):
        places = relax.const(np.array([[0], [9]]))
        w = b.emit(relax.op.scatter_nd(relax.const(random(4)), places, relax.const(random(2))))
        return b.emit(relax.op.add(x, w))

    assert op_names(folded(build((4,), body))) == ["scatter_nd", "add"]


@I.ir_module(check_well_formed=False)
class Products:
    """Products of a minimum: for these LLVM took minutes at its highest level."""

    @T.prim_func(private=True, s_tir=True)
    def products(out: T.Buffer((T.int64(3), T.int64(8), T.int64(1)), "float32")):
        least = T.sblock_alloc_buffer((), "float32")
        for i, j in T.grid(T.int64(8), T.int64(16)):
            with T.sblock("least"):
                vi = T.axis.reduce(T.int64(8), i)
                T.axis.reduce(T.int64(16), j)
                with T.init():
                    least[()] = T.float32(1.0)
                least[()] = T.min(least[()], T.Cast("float32", vi))
        for i, j, k, r in T.grid(T.int64(3), T.int64(8), T.int64(1), T.int64(5)):
            with T.sblock("product"):
                vi = T.axis.spatial(T.int64(3), i)
                vj = T.axis.spatial(T.int64(8), j)
                vk = T.axis.spatial(T.int64(1), k)
                T.axis.reduce(T.int64(5), r)
                with T.init():
                    out[vi, vj, vk] = T.float32(1.0)
                out[vi, vj, vk] = out[vi, vj, vk] * least[()]

    @R.function
    def main() -> R.Tensor((3, 8, 1), "float32"):
        cls = Products
        with R.dataflow():
            made = R.call_tir(cls.products, (), out_ty=R.Tensor((3, 8, 1), "float32"))
            R.output(made)
        return made


def test_loops_of_constants_are_not_computed_by_the_compiler():
    assert op_names(folded(Products)) == []
