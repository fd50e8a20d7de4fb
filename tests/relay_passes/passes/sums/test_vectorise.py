"""Sums of what stock TVM computes are in vectors where elements follow one another, and are the same."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from onnx import TensorProto
from tvm import relax, te, tirx
from tvm.script import ir as I
from tvm.script import tirx as T

import tvm_rammer
from tests.functions import TARGET
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.relay_passes.passes.sums.vectorise import VectoriseSums


def product(x, w):
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], k), "product")


def transposed(x, w):
    k = te.reduce_axis((0, w.shape[1]), "k")
    return te.compute((x.shape[0], w.shape[0]), lambda i, j: te.sum(x[i, k] * w[j, k], k), "product")


def sums_of_exp(x, w):
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * te.exp(w[k, j]), k), "sums")


def filters(x, w):
    """A convolution along the last axis, of images in the first."""
    c, k = te.reduce_axis((0, x.shape[1]), "c"), te.reduce_axis((0, w.shape[2]), "k")
    width = x.shape[2] - w.shape[2] + 1
    return te.compute(
        (x.shape[0], w.shape[0], width), lambda n, f, i: te.sum(x[n, c, i + k] * w[f, c, k], [c, k]), "filters"
    )


def every_other(x, w):
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute((x.shape[0], 8), lambda n, i: te.sum(x[n, i * 2 + k] * w[k], k), "strided")


def module_of(compute, x_shape, w_shape, dtype="float32"):
    """A function of as many rows as come."""
    n = tirx.Var("n", "int64")
    x, w = relax.Var("x", relax.TensorType((n, *x_shape), dtype)), relax.Var("w", relax.TensorType(w_shape, dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit_te(compute, x, w))
        builder.emit_func_output(out)
    return builder.get()


def vectors(mod) -> list[int]:
    """How long the vectors are."""
    found = []

    def loop(node: tirx.For) -> None:
        if node.kind == tirx.ForKind.VECTORIZED:
            found.append(int(node.extent))

    for func in mod.functions.values():
        if isinstance(func, tirx.PrimFunc):
            tvm_ffi.structural_walk(func.body, (tirx.For, loop), order="pre")
    return found


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("compute", "x_shape", "w_shape", "length"),
    [(product, (24,), (24, 128), 64), (product, (5,), (5, 11), 11), (filters, (3, 30), (4, 3, 3), 28)],
)
def test_sums_are_vectors_and_the_same(compute, x_shape, w_shape, length, dtype, rows):
    mod = module_of(compute, x_shape, w_shape, dtype)
    made = VectoriseSums()(mod)
    assert not vectors(mod)  # a pass changes no module that it is given
    length = min(length, 32) if dtype == "float64" else length
    assert vectors(made) == [length, length]  # what it begins with, and the sum
    x, w = random(rows, *x_shape).astype(dtype), random(*w_shape, seed=1).astype(dtype)
    stock, ours = (
        relax.VirtualMachine(tvm.compile(m, TARGET), tvm.cpu())["main"](*map(tvm.runtime.tensor, (x, w))).numpy()
        for m in (mod, made)
    )
    assert ours.shape == stock.shape
    np.testing.assert_allclose(ours, stock, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


@pytest.mark.parametrize(
    ("compute", "x_shape", "w_shape", "dtype"),
    [
        (transposed, (24,), (128, 24), "float32"),
        (sums_of_exp, (24,), (24, 128), "float32"),
        (every_other, (20,), (3,), "float32"),
        (product, (24,), (24, 127), "float32"),
        (product, (24,), (24, 128), "int32"),
    ],
    ids=["columns apart", "a function", "every other", "a prime number", "integers"],
)
def test_what_vectors_do_not_suit_stays(compute, x_shape, w_shape, dtype):
    mod = module_of(compute, x_shape, w_shape, dtype)
    assert VectoriseSums()(mod).same_as(mod)


def own(init: str, update: str) -> tvm.IRModule:
    """A caller's own function, with a block of his own."""
    source = f"""
@I.ir_module
class Own:
    @T.prim_func(private=True, s_tir=True)
    def main(x: T.Buffer((8, 16), "float32"), y: T.Buffer((4, 17), "float32")):
        for i, j, k in T.grid(4, 16, 8):
            with T.sblock("own"):
                r, c, t = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    {init}
                {update}
"""
    return tvm.script.from_source(source, extra_vars={"I": I, "T": T})


@pytest.mark.parametrize(
    ("init", "update", "changes"),
    [
        ("y[r, c + 1] = T.float32(0)", "y[r, c + 1] = y[r, c + 1] + x[t, c]", True),
        ("y[r, c + 1] = T.float32(0)", "y[r, c + 1] = y[r, c + 1] + y[r, c] * T.float32(0.5) + x[t, c]", False),
        ("y[r, c + 1] = T.float32(0)", "y[r, c + 1] = y[r, c] * T.float32(0.5) + x[t, c]", False),
        ("y[r, 0] = T.float32(0)", "y[r, c] = y[r, c] + x[t, c]", False),
    ],
    ids=["a sum", "reads its neighbour, too", "reads its neighbour", "begins elsewhere"],
)
def test_what_has_to_come_in_order_stays(init, update, changes):
    mod = own(init, update)
    assert VectoriseSums()(mod).same_as(mod) != changes


@I.ir_module
class Nested:
    """A product in a block within a block."""

    @T.prim_func(private=True, s_tir=True)
    def product(x: T.Buffer((8, 24), "float32"), w: T.Buffer((24, 32), "float32"), y: T.Buffer((8, 32), "float32")):
        for i in range(8):
            with T.sblock("row"):
                r = T.axis.spatial(8, i)
                for j, k in T.grid(32, 24):
                    with T.sblock("product"):
                        c, t = T.axis.remap("SR", [j, k])
                        with T.init():
                            y[r, c] = T.float32(0)
                        y[r, c] = y[r, c] + x[r, t] * w[t, c]


def test_a_block_within_a_block_does_what_it_did():
    x, w, y = random(8, 24), random(24, 32, seed=1), np.zeros((8, 32), "float32")
    func = VectoriseSums()(Nested)["product"].with_attr("global_symbol", "product").without_attr("private")
    arrays = [tvm.runtime.tensor(a) for a in (x, w, y)]
    tvm.compile(tvm.IRModule({"product": func}), TARGET)["product"](*arrays)
    np.testing.assert_allclose(arrays[2].numpy(), x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kept", [0, 1, 5])
def test_dense_layers_of_as_many_rows_as_the_data_say(kept):
    nodes = [
        node("NonZero", ["mask"], ["where"]),
        node("Squeeze", ["where", "zero"], ["rows"]),
        node("Gather", ["x", "rows"], ["some"]),
        node("MatMul", ["some", "w"], ["product"]),
        node("Add", ["product", "b"], ["sum"]),
        node("Relu", ["sum"], ["y"]),
    ]
    constants = [tensor("zero", np.array([0])), tensor("w", random(40, 96)), tensor("b", random(96, seed=1))]
    inputs = [value("x", [9, 40]), value("mask", [9], TensorProto.BOOL)]
    proto = model(nodes, inputs, [value("y", None)], constants, opset=13)
    x, mask = random(9, 40, seed=2), np.arange(9) < kept
    got = tvm_rammer.compile(proto, cache=False)(x, mask)
    np.testing.assert_allclose(got, by_onnxruntime(proto, x=x, mask=mask)[0], rtol=1e-5, atol=1e-5)
