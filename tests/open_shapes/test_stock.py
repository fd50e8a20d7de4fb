"""Stock TVM answers calls with new shapes while these are compiled."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.two_inputs import two_inputs
from tvm_rammer.zoo.light import light
from tvm_rammer.zoo.open_shapes.line_reader import line_reader

from .judge import SMALL, agrees, feed

pytestmark = pytest.mark.usefixtures("with_cache")


def test_stock_tvm_answers_meanwhile(tmp_path):
    model = two_inputs("batch")
    module = tvm_rammer.compile(model, cache=tmp_path, on_new_shape="stock")
    assert module.stock is not None
    agrees(module.stock, model, feed(2))
    with module._specialisations._compiling:  # as if another compilation took long
        agrees(module, model, feed(3))
        assert module.modules == ()
    module.wait()
    assert [m.inputs[0].shape[0] for m in module.modules] == [3]
    agrees(module, model, feed(3))
    assert "0 stock calls" in module.explain()


def test_stock_tvm_takes_layers_over_any_length():
    model = line_reader(**SMALL)
    module = tvm_rammer.compile(model, cache=False, on_new_shape="stock")
    assert module.stock is not None
    for width in (8, 24):
        agrees(module.stock, model, {"x": np.random.default_rng(0).random((1, 3, 16, width), "float32")})


def test_without_a_stock_build_calls_wait():
    signals, spectra = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4, parts]) for name, parts in (("x", 1), ("y", 2))
    )
    graph = helper.make_graph([helper.make_node("DFT", ["x"], ["y"], axis=1)], "spectra", [signals], [spectra])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = tvm_rammer.compile(model, cache=False, on_new_shape="stock")
    assert module.stock is None
    agrees(module, model, {"x": np.random.default_rng(0).random((3, 4, 1), "float32")})
    assert len(module.modules) == 1


def test_stock_tvm_takes_convolutions_of_any_size():
    model = light("squeezenet")
    inputs = [value for value in model.graph.input if value.name not in {t.name for t in model.graph.initializer}]
    for number, name in ((2, "height"), (3, "width")):
        inputs[0].type.tensor_type.shape.dim[number].dim_param = name
    module = tvm_rammer.compile(model, cache=False, on_new_shape="stock")
    assert module.stock is not None
    x = np.random.default_rng(0).standard_normal((1, 3, 40, 48)).astype("float32")
    agrees(module.stock, model, {inputs[0].name: x})
