"""Indices in the data: inside of what they index, or an error that names the operator; never another memory."""

import numpy as np
import pytest
import tvm_ffi
from onnx import TensorProto
from tvm import relax

import tvm_rammer
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import load_model
from tvm_rammer.relay_passes.passes.check_indices import CheckIndices

from ..models import by_onnxruntime, model, node, op_names, random, tensor, value

BAD = [10**9, 2**31, 2**63 - 1, -(2**63), -11, 10]
"""For a dimension of 10: far outside, and one past each end."""


def index(name, *shape, elem=TensorProto.INT64):
    return value(name, shape, elem)


def cases():
    """Models whose input `i` indexes ten rows, and right indices for it."""
    x, w = value("x", [10, 4]), tensor("w", random(10, 4))
    updates = tensor("u", random(3, 4))
    yield "Gather", model([node("Gather", ["w", "i"], ["y"])], [index("i", 3)], ["y"], [w]), np.array([0, 9, -1])
    yield (
        "GatherElements",
        model([node("GatherElements", ["x", "i"], ["y"])], [x, index("i", 2, 4)], ["y"]),
        np.array([[0, 9, -1, 3], [1, 2, -10, 4]]),
    )
    yield (
        "GatherND",
        model([node("GatherND", ["w", "i"], ["y"])], [index("i", 2, 1)], ["y"], [w]),
        np.array([[9], [-1]]),
    )
    yield (
        "ScatterElements",
        model([node("ScatterElements", ["w", "i", "u"], ["y"])], [index("i", 3, 4)], ["y"], [w, updates], opset=16),
        np.array([[0, 1, 2, 3], [4, 5, 6, -1], [7, 8, 9, 5]]),
    )
    yield (
        "ScatterND",
        model([node("ScatterND", ["w", "i", "u"], ["y"])], [index("i", 3, 1)], ["y"], [w, updates], opset=16),
        np.array([[0], [9], [-2]]),
    )


CASES = {name: (proto, good) for name, proto, good in cases()}


@pytest.fixture(scope="module")
def modules():
    return {name: tvm_rammer.compile(proto) for name, (proto, _) in CASES.items()}


def inputs_of(name, indices):
    named = {i.name for i in CASES[name][0].graph.input}
    return {"i": indices} | ({"x": random(10, 4, seed=1)} if "x" in named else {})


@pytest.mark.parametrize("name", CASES)
def test_right_indices_negative_ones_too(modules, name):
    given = inputs_of(name, CASES[name][1])
    (expected,) = by_onnxruntime(CASES[name][0], **given)
    np.testing.assert_array_equal(modules[name](**given), expected)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", CASES)
def test_an_index_outside_is_an_error_that_names_the_operator(modules, name, bad):
    indices = CASES[name][1].copy()
    indices.reshape(-1)[-1] = bad
    with pytest.raises(ModelError, match=f"{name} got an index outside of the 10 that it indexes; mend the data of"):
        modules[name](**inputs_of(name, indices))
    given = inputs_of(name, CASES[name][1])
    (expected,) = by_onnxruntime(CASES[name][0], **given)
    np.testing.assert_array_equal(modules[name](**given), expected)  # and the module goes on


def test_each_coordinate_has_its_own_bounds():
    proto = model([node("GatherND", ["x", "i"], ["y"])], [value("x", [3, 50]), index("i", 1, 2)], ["y"])
    module, x = tvm_rammer.compile(proto), random(3, 50)
    np.testing.assert_array_equal(module(x, np.array([[2, 49]])), x[2, 49:])
    with pytest.raises(ModelError, match="outside of the 3 x 50 that"):
        module(x, np.array([[3, 49]]))


def test_constant_indices_are_checked_when_the_model_is_compiled():
    nodes = [node("Gather", ["x", "i"], ["y"])]
    proto = model(nodes, [value("x", [10, 4])], [value("y", [2, 4])], [tensor("i", np.array([1, 99]))])
    with pytest.raises(ModelError, match=r"index|out of"):
        tvm_rammer.compile(proto)


def test_a_model_without_such_indices_is_left_alone():
    mod = load_model(model([node("Relu", ["x"], ["y"])], [value("x", [3])], ["y"]))
    assert tvm_ffi.structural_equal(CheckIndices()(mod), mod)


def test_indices_are_clipped_once_for_all_that_use_them():
    nodes = [node("Gather", ["w", "i"], ["a"]), node("Gather", ["v", "i"], ["b"]), node("Add", ["a", "b"], ["y"])]
    tensors = [tensor("w", random(10, 4)), tensor("v", random(10, 4, seed=1))]
    checked = CheckIndices()(load_model(model(nodes, [index("i", 3)], ["y"], tensors)))
    assert len([name for name in op_names(checked) if name.startswith("index_outside")]) <= 2


def test_an_index_in_a_function_that_others_call_is_reported():
    builder = relax.BlockBuilder()
    x, i = relax.Var("x", relax.TensorType((10, 4), "float32")), relax.Var("i", relax.TensorType((3,), "int64"))
    with builder.function("rows", [x, i], private=True):
        with builder.dataflow():
            out = builder.emit_output(relax.op.take(x, i, axis=0))
        builder.emit_func_output(out)
    rows = builder.get().get_global_var("rows")
    a, k = relax.Var("a", relax.TensorType((10, 4), "float32")), relax.Var("k", relax.TensorType((3,), "int64"))
    with builder.function("main", [a, k]):
        with builder.dataflow():
            double = builder.emit(relax.op.add(a, a))
            taken = builder.emit(relax.Call(rows, [double, k]))
            once = builder.emit(relax.op.negative(taken))
            out = builder.emit_output(relax.op.add(once, taken))
        builder.emit_func_output(out)
    mod = builder.get()
    checked = CheckIndices()(mod)
    assert not checked["main"].is_pure and not checked["rows"].is_pure
    kinds = [isinstance(block, relax.DataflowBlock) for block in checked["main"].body.blocks]
    assert kinds == [True, False, True]
    module = tvm_rammer.compile(mod, cache=False)
    values = random(10, 4)
    np.testing.assert_array_equal(module(values, np.array([0, 9, 1])), np.zeros((3, 4)))
    with pytest.raises(ModelError, match="Gather got an index outside of the 10"):
        module(values, np.array([0, 10, 1]))
