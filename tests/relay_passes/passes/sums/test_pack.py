"""Matrices that tiles read in vectors are packed, and results stay what they are, bit by bit."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from onnx import TensorProto
from tvm import relax, te, tirx
from tvm.ir import GenericConst

import tvm_rammer
from tests.functions import TARGET
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.relay_passes.bindings import static_shape
from tvm_rammer.relay_passes.passes.sums import pack, tile_code
from tvm_rammer.relay_passes.passes.sums.pack import PackMatrices
from tvm_rammer.relay_passes.passes.sums.tile import TileSums

K = 40


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(pack, "LEAST_PACKED", 1)
    monkeypatch.setattr(tile_code, "MOST_STEPS", 16)


def dense(x, w):
    k = te.reduce_axis((0, K), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], k), "dense")


def twice(x, w):
    """The weights are read by an operator of the same function once more."""
    product = dense(x, w)
    return te.compute(product.shape, lambda i, j: product[i, j] + w[0, j], "shifted")


def module_of(compute, columns, *, constant=True, calls=1):
    """Calls of one function with matrices of so many columns, added up."""
    x = relax.Var("x", relax.TensorType((tirx.Var("n", "int64"), K), "float32"))
    given = relax.Var("w", relax.TensorType((K, columns), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x] if constant else [x, given]):
        with builder.dataflow():
            results = []
            for n in range(calls):
                w = relax.const(random(K, columns, seed=n), "float32") if constant else given
                results.append(builder.emit(builder.call_te(compute, x, w)))
            total = results[0]
            for other in results[1:]:
                total = builder.emit(relax.op.add(total, other))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return relax.transform.LegalizeOps()(builder.get())


def matrices(mod):
    """The shapes of all constants."""
    found = []
    tvm_ffi.structural_walk(mod["main"], [(GenericConst, found.append)], order="pre")
    return [static_shape(constant.ty) for constant in found]


@pytest.mark.parametrize(
    ("columns", "calls", "packed"),
    [(128, 1, (2, K, 64)), (91, 1, (2, K, 48)), (364, 2, (6, K, 64)), (65, 1, (2, K, 48))],
)
def test_columns_of_a_vector_lie_side_by_side(columns, calls, packed):
    tiled = TileSums(64)(module_of(dense, columns, calls=calls))
    made = PackMatrices()(tiled)
    assert matrices(tiled) == [(K, columns)] * calls  # a pass changes no module that it is given
    assert matrices(made) == [packed] * calls
    before, after = (relax.VirtualMachine(tvm.compile(m, TARGET), tvm.cpu())["main"] for m in (tiled, made))
    for rows in (0, 1, 7, 30):
        x = tvm.runtime.tensor(random(rows, K, seed=rows))
        np.testing.assert_array_equal(after(x).numpy(), before(x).numpy())


@pytest.mark.parametrize(
    "mod",
    [
        module_of(dense, 128, constant=False),
        module_of(twice, 128),
        module_of(dense, 32),
    ],
    ids=["no constant", "read elsewhere", "one vector"],
)
def test_other_matrices_stay(mod):
    tiled = TileSums(64)(mod)
    assert PackMatrices()(tiled).same_as(tiled)


def test_small_ones_stay(monkeypatch):
    monkeypatch.setattr(pack, "LEAST_PACKED", K * 128 + 1)
    tiled = TileSums(64)(module_of(dense, 128))
    assert PackMatrices()(tiled).same_as(tiled)


def test_in_a_model_with_a_program():
    """Launches of programs have parameters that are no tensors."""
    nodes = [
        node("MatMul", ["x", "v"], ["h"]), node("Relu", ["h"], ["a"]), node("Compress", ["a", "chosen"], ["r"], axis=0),
        node("MatMul", ["r", "w"], ["m"]), node("Add", ["m", "b"], ["y"]),
    ]  # fmt: skip
    constants = {"v": random(16, K, seed=1), "w": random(K, 91, seed=2), "b": random(91, seed=3)}
    given = [value("x", [9, 16]), value("chosen", [9], TensorProto.BOOL)]
    proto = model(nodes, given, ["y"], [tensor(*each) for each in constants.items()])
    feeds = {"x": random(9, 16), "chosen": np.arange(9) % 4 != 1}
    compiled = tvm_rammer.compile(proto)
    np.testing.assert_allclose(compiled(**feeds), by_onnxruntime(proto, **feeds)[0], rtol=1e-5, atol=1e-5)
