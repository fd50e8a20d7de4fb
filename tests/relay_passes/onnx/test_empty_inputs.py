"""Inputs and values without elements: their shape is all there is, so they are constants."""

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.errors import ModelError, ShapeError

from ..models import by_onnxruntime, model, node, random, tensor, value

CONSTANTS = {
    "w": np.ones((3, 4), "float32"),
    "image_weights": np.ones((4, 3, 3, 3), "float32"),
    "scale": np.ones(3, "float32"),
    "sizes": np.array([1, 1, 2, 2], "float32"),
    "lstm_w": np.ones((1, 8, 3), "float32"),
    "lstm_r": np.ones((1, 8, 2), "float32"),
    "bytes": np.ones((3, 2), "int8"),
    "none": np.ones((0, 3), "float32"),
    "table": np.ones((4, 3), "float32"),
    "zero": np.array([0]),
    "one": np.array([1]),
}


def proto_of(nodes, shape, others=()):
    """A model of an input `x`, of which sizes of 0 are written `n`, and of others."""
    used = {name for n in nodes for name in n.input}
    named = value("x", [size or "n" for size in shape])
    constants = [tensor(name, array) for name, array in CONSTANTS.items() if name in used]
    return model(nodes, [named, *others], ["y"], constants, opset=20, ir=10)


ROWS, IMAGES = (0, 3), (0, 3, 8, 8)
NETS = {
    "Relu": (ROWS, [node("Relu", ["x"], ["y"])]),
    "columns": ((2, 0), [node("Exp", ["x"], ["y"])]),
    "Softmax": ((2, 0), [node("Softmax", ["x"], ["y"])]),
    "products": (ROWS, [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])]),
    "product over nothing": (ROWS, [node("Gemm", ["x", "x"], ["y"], transA=1)]),
    "product of bytes": (
        ROWS,
        [
            node("Cast", ["x"], ["b"], to=2),
            node("MatMulInteger", ["b", "bytes"], ["i"]),
            node("Cast", ["i"], ["y"], to=1),
        ],
    ),
    "ScatterND": ((0, 1), [node("Cast", ["x"], ["n"], to=7), node("ScatterND", ["table", "n", "none"], ["y"])]),
    "Conv": (IMAGES, [node("Conv", ["x", "image_weights"], ["h"]), node("Relu", ["h"], ["y"])]),
    "Resize": (IMAGES, [node("Resize", ["x", "", "sizes"], ["y"], mode="linear")]),
    "GlobalAveragePool": (IMAGES, [node("GlobalAveragePool", ["x"], ["p"]), node("Flatten", ["p"], ["y"])]),
    "LayerNormalization": (ROWS, [node("LayerNormalization", ["x", "scale"], ["y"])]),
    "ReduceMax": (ROWS, [node("ReduceMax", ["x", "zero"], ["y"])]),
    "as it is": (ROWS, [node("Identity", ["x"], ["y"])]),
}


@pytest.mark.parametrize("name", NETS)
def test_an_input_without_elements(name):
    shape, nodes = NETS[name]
    proto, x = proto_of(nodes, shape), np.zeros(shape, "float32")
    (want,) = by_onnxruntime(proto, x=x)
    (got,) = tvm_rammer.compile(proto, shapes={"n": 0}).run(None, {"x": x})
    np.testing.assert_array_equal(got, want, strict=True)


def test_a_product_of_bytes_over_nothing_is_0():
    """Of ONNX Runtime it is what the memory held before."""
    nodes = [
        node("Cast", ["x"], ["b"], to=2),
        node("Transpose", ["b"], ["t"]),
        node("MatMulInteger", ["t", "b"], ["i"]),
        node("Cast", ["i"], ["y"], to=1),
    ]
    module = tvm_rammer.compile(proto_of(nodes, ROWS), shapes={"n": 0})
    np.testing.assert_array_equal(module(np.zeros(ROWS, "float32")), np.zeros((3, 3), "float32"), strict=True)


@pytest.mark.parametrize("shape", [{"x": (0, 3)}, {"n": 0}])
def test_beside_one_that_has_some(shape):
    proto = proto_of([node("Concat", ["x", "z"], ["y"], axis=0)], ROWS, [value("z", [2, 3])])
    z = random(2, 3)
    np.testing.assert_array_equal(tvm_rammer.compile(proto, shapes=shape)(np.zeros(ROWS, "float32"), z), z)


def test_a_file_that_says_0_leaves_the_size_open_unless_it_is_given():
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [0, 3])], ["y"])
    assert tvm_rammer.compile(proto).inputs[0].shape == (-1, 3)
    module = tvm_rammer.compile(proto, shapes={"x": (0, 3)})
    assert module(np.zeros((0, 3), "float32")).shape == (0, 3)
    with pytest.raises(ShapeError, match="sizes are from 0"):
        tvm_rammer.compile(proto, shapes={"x": (-1, 3)})


CUT = {
    "Conv": ((2, 3, 8, 8), [node("Conv", ["e", "image_weights"], ["y"])]),
    "Flatten": ((4, 3), [node("Flatten", ["e"], ["y"])]),
    "DepthToSpace": ((2, 4, 3, 3), [node("DepthToSpace", ["e"], ["y"], blocksize=2)]),
    "TopK": ((4, 3), [node("TopK", ["x", "zero"], ["y", "i"], axis=1)]),
    "ReduceMean of none to none": ((4, 3), [node("ReduceMean", ["e", "one"], ["y"])]),
}


@pytest.mark.parametrize("name", CUT)
def test_a_value_without_elements(name):
    shape, nodes = CUT[name]
    proto, x = proto_of([node("Slice", ["x", "zero", "zero", "zero"], ["e"]), *nodes], shape), random(*shape)
    (want,) = by_onnxruntime(proto, x=x)
    np.testing.assert_array_equal(tvm_rammer.compile(proto)(x), want, strict=True)


@pytest.mark.parametrize("sizes", [[2, 0, 1], [0, 3], [3, 0]])
@pytest.mark.parametrize("axis", [0, -1])
def test_parts_without_elements(sizes, axis):
    names = [f"p{n}" for n in range(len(sizes))]
    nodes = [node("Split", ["x", "sizes"], names, axis=axis)]
    proto, x = model(nodes, [value("x", [3, 3])], names, [tensor("sizes", np.array(sizes))]), random(3, 3)
    for got, want in zip(tvm_rammer.compile(proto).run(None, {"x": x}), by_onnxruntime(proto, x=x), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


def test_a_recurrent_layer_of_no_sequence():
    """ONNX Runtime ends the process."""
    cut = node("Slice", ["x", "zero", "zero", "one"], ["e"])
    lstm = node("LSTM", ["e", "lstm_w", "lstm_r"], ["y"], hidden_size=2)
    assert tvm_rammer.compile(proto_of([cut, lstm], (4, 2, 3)))(random(4, 2, 3)).shape == (4, 1, 0, 2)


def test_a_recurrent_layer_of_no_step_is_refused():
    lstm = node("LSTM", ["x", "lstm_w", "lstm_r"], ["all", "y"], hidden_size=2)
    with pytest.raises(ModelError, match=r"LSTM 'all' has no step, for its input has the shape \[0, 2, 3\]"):
        tvm_rammer.compile(proto_of([lstm], (0, 2, 3)), shapes={"n": 0})


def test_a_recurrent_layer_whose_input_has_other_axes_is_refused():
    lstm = node("LSTM", ["e", "lstm_w", "lstm_r"], ["all", "y"], hidden_size=2)
    nodes = [node("Unsqueeze", ["x", "zero"], ["e"]), lstm]
    with pytest.raises(ModelError, match=r"LSTM 'all' has an input of the shape \[1, 4, 2, 3\], .* three axes"):
        tvm_rammer.compile(proto_of(nodes, (4, 2, 3)))


def test_modules_of_tvm_take_such_inputs_too():
    module = tvm_rammer.compile(relax_module([(2, 0)], lambda x: relax.op.nn.softmax(x)))
    assert module(np.zeros((2, 0), "float32")).shape == (2, 0)


def test_an_input_without_elements_may_be_a_result():
    proto = model([node("Relu", ["x"], ["y"])], [value("x", ["n", 3])], ["y", "x"])
    y, x = tvm_rammer.compile(proto, shapes={"n": 0}, cache=False)(np.zeros((0, 3), "float32"))
    assert y.shape == x.shape == (0, 3)
