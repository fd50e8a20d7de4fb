"""Sizes that only the data say: where they fit results are right, elsewhere the call says which operator it was."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.relay_passes import models
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.passes.indices import CheckSizes

FITTING = ((3, 3), (1, 1), (6, 6))
DIFFERENT = ((2, 5), (5, 2))
node = helper.make_node

CONSTANTS = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "second": np.array(1),
    "minus": np.array([-1]),
    "none": np.array(0, np.int64),
    "true": np.array([True]),
    "two_by_three": np.array([2, 3]),
    "zeros": np.zeros(6, np.float32),
    "column": np.ones((2, 1), np.float32),
}
# `a` is a row [1, n] and `b` a row [1, m], of as many numbers as x and y have that are not zero; n and m are vectors.
ROWS = [
    node("NonZero", ["x"], ["a_places"]),
    node("NonZero", ["y"], ["b_places"]),
    node("Cast", ["a_places"], ["a"], to=TensorProto.FLOAT),
    node("Cast", ["b_places"], ["b"], to=TensorProto.FLOAT),
    node("Squeeze", ["a", "zero"], ["n"]),
    node("Squeeze", ["b", "zero"], ["m"]),
    node("Squeeze", ["b_places", "zero"], ["places"]),
    node("Transpose", ["b"], ["bt"]),
    node("Shape", ["b"], ["shape"]),
]
CASES = {
    "Add": [node("Add", ["a", "b"], ["z"])],
    "Where": [node("Where", ["true", "a", "b"], ["z"])],
    "Less": [node("Less", ["a", "b"], ["less"]), node("Cast", ["less"], ["z"], to=TensorProto.FLOAT)],
    "MatMul": [node("MatMul", ["a", "bt"], ["z"])],
    "MatMul of vectors": [node("MatMul", ["n", "m"], ["z"])],
    "Gemm": [node("Gemm", ["a", "b"], ["z"], transB=1)],
    "Einsum": [node("Einsum", ["n", "m"], ["z"], equation="i,i->")],
    "Concat": [node("Concat", ["a", "b"], ["z"], axis=0)],
    "Reshape": [node("Reshape", ["a", "shape"], ["z"])],
    "Expand": [node("Expand", ["a", "shape"], ["z"])],
    "ScatterElements": [node("ScatterElements", ["zeros", "places", "n"], ["z"])],
    "Min": [node("Min", ["a", "b"], ["z"])],
    "a bias": [node("MatMul", ["column", "a"], ["product"]), node("Add", ["product", "m"], ["z"])],
    "what follows has a shape": [
        node("Softmax", ["a"], ["soft"]),
        node("Mul", ["soft", "b"], ["scaled"]),
        node("Concat", ["scaled", "a"], ["z"], axis=1),
    ],
}


def model_of(nodes):
    names = {name for n in [*ROWS, *nodes] for name in n.input}
    constants = [models.tensor(name, array) for name, array in CONSTANTS.items() if name in names]
    return models.model([*ROWS, *nodes], [models.value(name, [6]) for name in "xy"], ["z"], constants, opset=18)


def counted(n):
    """Six numbers, the last n of which are not zero."""
    return np.arange(6, dtype=np.float32) >= 6 - n


@pytest.mark.parametrize("name", CASES)
def test_sizes_are_compared_when_the_model_runs(name):
    proto = model_of(CASES[name])
    module = tvm_rammer.compile(proto)
    for n, m in FITTING:
        given = {"x": counted(n).astype(np.float32), "y": counted(m).astype(np.float32)}
        (want,) = models.by_onnxruntime(proto, **given)
        np.testing.assert_allclose(module(**given), want, rtol=1e-5, atol=1e-6)
    operator = {"a bias": "Add", "Gemm": "MatMul", "what follows has a shape": "Mul"}.get(name, name.split()[0])
    for n, m in DIFFERENT:
        with pytest.raises(
            tvm_rammer.ModelError, match=rf"{operator} got tensors whose sizes.*mend the data of 'x', 'y'"
        ):
            module(counted(n).astype(np.float32), counted(m).astype(np.float32))


BROADCAST = ["Add", "Where", "Less", "Min", "a bias", "what follows has a shape"]


@pytest.mark.parametrize("name", BROADCAST)
def test_one_of_something_is_repeated_for_the_size_of_the_tensor_before(name):
    proto = model_of(CASES[name])
    module = tvm_rammer.compile(proto)
    for n in (3, 6, 1):
        given = {"x": counted(n).astype(np.float32), "y": counted(1).astype(np.float32)}
        np.testing.assert_allclose(module(**given), models.by_onnxruntime(proto, **given)[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(tvm_rammer.ModelError, match=r"got tensors whose sizes.*are not equal"):
        module(counted(1).astype(np.float32), counted(3).astype(np.float32))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["Add", "MatMul", "Equal"])
def test_one_of_something_is_repeated_for_a_size_that_is_known(kind, turned):
    """In a product these are the axes before its matrices."""
    nodes = [node("Unsqueeze", ["m", "axes"], ["c"]), node(kind, ["c", "known"] if turned else ["known", "c"], ["z"])]
    results = [models.value("z", None, TensorProto.BOOL if kind == "Equal" else TensorProto.FLOAT)]
    known = models.random(2, 1, 1) if kind == "MatMul" else models.random(2, 3, 1)
    constants = [models.tensor("axes", np.array([1, 2])), models.tensor("zero", CONSTANTS["zero"])]
    inputs = [models.value("y", [6]), models.value("known", known.shape)]
    proto = models.model([ROWS[1], ROWS[3], ROWS[5], *nodes], inputs, results, constants, opset=18)
    module = tvm_rammer.compile(proto)
    for m in (1, 2):
        given = {"y": counted(m).astype(np.float32), "known": known}
        (want,) = models.by_onnxruntime(proto, **given)
        np.testing.assert_allclose(module(**given), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(tvm_rammer.ModelError, match=r"got tensors whose sizes.*are not equal.*mend the data of .*'y'"):
        module(counted(3).astype(np.float32), known)


def test_nothing_is_not_repeated():
    proto = model_of(CASES["Add"])
    module = tvm_rammer.compile(proto)
    given = {"x": counted(0).astype(np.float32), "y": counted(1).astype(np.float32)}
    assert np.asarray(module(**given)).shape == models.by_onnxruntime(proto, **given)[0].shape == (1, 0)


def compiled(kind, *inputs):
    """A model of one node."""
    names = [value.name for value in inputs]
    return tvm_rammer.compile(models.model([node(kind, names, ["z"])], inputs, ["z"], opset=18))


@pytest.mark.parametrize(
    ("target", "shape"), [((1, 1), (1, 3)), ((2, 1), (2, 3)), ((4, 3), (4, 3)), ((0, 3), (0, 3)), ((2, 2), None),
                          ((1, 5), None), ((1, -3), None)],
)  # fmt: skip
def test_an_extent_that_is_not_one_stays_in_an_expand(target, shape):
    x = np.array([[1, 2, 3]], np.float32)
    module = compiled("Expand", models.value("x", [1, 3]), models.value("y", [2], TensorProto.INT64))
    if shape is None:
        told = "a shape that no tensor can have" if min(target) < 0 else "Expand got tensors whose sizes.*nor 1"
        with pytest.raises(tvm_rammer.ModelError, match=told):
            module(x, np.array(target))
    else:
        np.testing.assert_array_equal(module(x, np.array(target)), np.broadcast_to(x, shape))


def test_what_is_divided_by_a_size_of_nothing_ends_no_process():
    nodes = [
        node("Shape", ["a"], ["extents"]),
        node("Gather", ["extents", "second"], ["number"]),
        node("Unsqueeze", ["number", "zero"], ["count"]),
        node("Concat", ["minus", "count"], ["shape_of_b"], axis=0),
        node("Reshape", ["b", "shape_of_b"], ["z"]),
    ]
    module = tvm_rammer.compile(model_of(nodes))
    right = module(counted(2).astype(np.float32), counted(4).astype(np.float32))
    np.testing.assert_array_equal(right, [[2, 3], [4, 5]])
    for n, m in ((0, 3), (2, 3)):
        with pytest.raises(tvm_rammer.ModelError, match="Reshape got tensors whose sizes"):
            module(counted(n).astype(np.float32), counted(m).astype(np.float32))


def test_more_of_the_largest_than_there_are():
    nodes = [node("TopK", ["n", "one"], ["z", "z_places"])]
    module = tvm_rammer.compile(model_of(nodes))
    assert module(counted(3).astype(np.float32), counted(1).astype(np.float32)) == [5]
    with pytest.raises(
        tvm_rammer.ModelError, match="TopK got tensors whose sizes, which only the data say, are too small"
    ):
        module(counted(0).astype(np.float32), counted(1).astype(np.float32))


def test_a_constant_of_a_shape_that_the_data_say():
    module = compiled("ConstantOfShape", models.value("x", [2], TensorProto.INT64))
    np.testing.assert_array_equal(module(np.array([2, 5])), np.zeros((2, 5), np.float32))


def test_a_static_module_stays_the_same():
    proto = models.model([node("Relu", ["x"], ["z"])], [models.value("x", (2, 3))], [models.value("z", (2, 3))])
    mod = load_model(proto)
    assert CheckSizes()(mod)["main"].same_as(mod["main"])
