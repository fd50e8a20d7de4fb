"""Detours of TVM's ONNX frontend are taken out."""

import numpy as np
import pytest
import tvm_ffi
from onnx import TensorProto
from tvm import relax

from tvm_rammer.relay_passes import SimplifyOps, load_model

from ..models import by_onnxruntime, model, node, op_names, random, value
from .test_fold_batchnorm import build


@pytest.mark.parametrize(
    ("kind", "name"), [("Sum", "add"), ("Mean", "add"), ("Max", "maximum"), ("Min", "minimum")]
)  # fmt: skip
@pytest.mark.parametrize("count", [2, 3])
def test_reductions_of_stacks_become_elementwise(run, kind, name, count):
    names = ["x", "y", "z"][:count]
    proto = model([node(kind, names, ["out"])], [value(n, [2, 3]) for n in names], ["out"])
    mod = SimplifyOps()(load_model(proto))
    assert op_names(mod) == [name] * (count - 1) + ["divide"] * (kind == "Mean")
    arrays = {n: random(2, 3, seed=i) for i, n in enumerate(names)}
    np.testing.assert_allclose(run(mod, *arrays.values()), by_onnxruntime(proto, **arrays)[0], rtol=1e-6)


def test_broadcasts_remain_where_shapes_differ(run):
    proto = model([node("Sum", ["x", "y"], ["out"])], [value("x", [2, 3]), value("y", [3])], ["out"])
    mod = SimplifyOps()(load_model(proto))
    assert op_names(mod) == ["broadcast_to", "add"]
    x, y = random(2, 3), random(3)
    np.testing.assert_allclose(run(mod, x, y), x + y)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_number_without_itself_is_nothing(run, kind):
    nodes = [node("Div", ["x", "n"], ["q"]), node("Sub", ["q", "q"], ["d"]), node("Div", ["q", "d"], ["y"])]
    elem = TensorProto.FLOAT if kind == "float32" else TensorProto.DOUBLE
    proto = model(nodes, [value("x", [2, 3], elem), value("n", [2, 1], elem)], ["d", "y"])
    x = np.array([[-2.2, 2.1, 1], [np.inf, np.nan, 0]], kind)
    quotients = x / np.array([[4.3], [3.3]], kind)
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = quotients - quotients, quotients / (quotients - quotients)
    for got, want in zip(run(load_model(proto), x, np.array([[4.3], [3.3]], kind)), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_reshapes_and_casts_to_the_same_vanish():
    def body(b, x):
        return b.emit(relax.op.exp(b.emit(relax.op.astype(b.emit(relax.op.reshape(x, (2, 3))), "float32"))))

    def expected(b, x):
        return b.emit(relax.op.exp(x))

    after = SimplifyOps()(build((2, 3), body))
    assert tvm_ffi.structural_equal(after, relax.transform.CanonicalizeBindings()(build((2, 3), expected)))


@pytest.mark.parametrize("options", [{"axis": [1]}, {"axis": [0], "keepdims": True}, {}], ids=str)
def test_other_reductions_stay(options):
    def body(b, x):
        return b.emit(relax.op.sum(b.emit(relax.op.stack([x, x], axis=0)), **options))

    mod = build((2, 3), body)
    assert SimplifyOps()(mod).same_as(mod)


@pytest.mark.parametrize("negated", [False, True])
def test_truth_values_are_compared(negated, run):
    nodes = [node("Equal", ["x", "y"], ["same"]), node("Not", ["same"], ["differ"])]
    inputs = [value(n, s, TensorProto.BOOL) for n, s in (("x", [2, 3]), ("y", [3]))]
    output = value("differ" if negated else "same", [2, 3], TensorProto.BOOL)
    proto = model(nodes[: 1 + negated], inputs, [output])
    arrays = {"x": np.array([[0, 0, 1], [1, 1, 0]], bool), "y": np.array([0, 1, 1], bool)}
    got = run(SimplifyOps()(load_model(proto)), *arrays.values())
    np.testing.assert_array_equal(got, by_onnxruntime(proto, **arrays)[0])


@pytest.mark.parametrize(("count", "expected"), [(16, 1), (17, 2), (40, 4), (300, 22)])
@pytest.mark.parametrize("axis", [0, -1])
def test_long_concatenations_become_several(run, count, expected, axis):
    nodes = [node("Concat", ["x", "y"] * (count // 2) + ["x"] * (count % 2), ["out"], axis=axis)]
    proto = model(nodes, [value("x", [2, 3]), value("y", [2, 3])], ["out"])
    mod = SimplifyOps()(load_model(proto))
    assert op_names(mod) == ["concat"] * expected
    x, y = random(2, 3), random(2, 3, seed=1)
    np.testing.assert_array_equal(run(mod, x, y), by_onnxruntime(proto, x=x, y=y)[0])


def test_reshapes_there_and_back_vanish():
    def body(b, x):
        there = b.emit(relax.op.reshape(b.emit(relax.op.expand_dims(x, 1)), (6, 1)))
        return b.emit(relax.op.exp(b.emit(relax.op.squeeze(b.emit(relax.op.reshape(there, (2, 1, 3))), [1]))))

    mod = build((2, 3), body)
    assert op_names(SimplifyOps()(mod)) == ["exp"]
