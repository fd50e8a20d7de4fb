"""ONNX's interface of backends."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer.onnx_backend as backend
from tvm_rammer.errors import CodegenError, ModelError, RammerError, TargetError


def model(op, inputs, outputs=("y",), opset=21, **attributes):
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    node = helper.make_node(op, [name for name, _, _ in inputs], list(outputs), **attributes)
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "test", values, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def test_a_model_runs_by_position_and_by_name():
    x, z = np.arange(3, dtype="float32"), np.ones(3, "float32")
    prepared = backend.prepare(model("Add", [("x", 1, [3]), ("z", 1, ["n"])]))
    for given in ([x, z], {"x": x, "z": z}):
        np.testing.assert_array_equal(prepared.run(given)["y"], x + z)
    np.testing.assert_array_equal(backend.run_model(model("Add", [("x", 1, [3]), ("z", 1, [3])]), [x, z])[0], x + z)


def test_each_set_of_values_is_compiled_once():
    prepared = backend.prepare(model("Unsqueeze", [("x", 1, [2, 3]), ("axes", TensorProto.INT64, [1])]))
    x = np.ones((2, 3), "float32")
    for axis, shape in ((0, (1, 2, 3)), (2, (2, 3, 1)), (0, (1, 2, 3))):
        assert prepared.run([x, np.array([axis])])[0].shape == shape
    assert len(prepared._compiled) == 2


def test_a_node_runs_alone():
    x = np.array([-1, 2], "float32")
    (y,) = backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])
    np.testing.assert_array_equal(y, [0, 2])


def test_there_is_one_device():
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    with pytest.raises(TargetError, match="no device 'CUDA:1'"):
        backend.prepare(model("Relu", [("x", 1, [2])]), "CUDA:1")


def test_what_is_no_tensor_is_refused():
    prepared = backend.prepare(model("Relu", [("x", 1, [2])]))
    with pytest.raises(ModelError, match="input 'x' of Relu is no tensor of numbers but strings"):
        prepared.run([np.array(["a", "b"])])
    with pytest.raises(ModelError, match="2 inputs given, but the model has 1"):
        prepared.run([np.ones(2, "float32")] * 2)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_sequences_are_lists_of_arrays(length):
    given = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    returned = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
    graph = helper.make_graph(
        [helper.make_node("SequenceInsert", ["s", "x"], ["t"])], "g", [given, *values], [returned]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    arrays = [np.full((n + 1,), n, "float32") for n in range(length)]
    x = np.ones(2, "float32")
    prepared = backend.prepare(proto)
    for inputs in ([arrays, x], {"x": x, "s": arrays}):
        (found,) = prepared.run(inputs)
        assert len(found) == length + 1
        for got, want in zip(found, [*arrays, x], strict=True):
            np.testing.assert_array_equal(got, want)


def test_what_has_no_elements_is_a_constant():
    prepared = backend.prepare(model("ReduceSum", [("x", 1, [2, 0]), ("axes", TensorProto.INT64, [1])]))
    np.testing.assert_array_equal(prepared.run([np.zeros((2, 0), "float32"), np.array([1])])[0], np.zeros((2, 1)))


def test_no_exception_of_others_leaves_the_compiler(monkeypatch):
    from tvm_rammer.compilation import compiler

    def fail(*_args):
        raise TypeError("a message of TVM's")

    monkeypatch.setattr(compiler, "find_kernels", fail)
    with pytest.raises(CodegenError, match=r"fails at one of the operators .*relu: TypeError: a message") as caught:
        backend.run_model(model("Relu", [("x", 1, [2])]), [np.ones(2, "float32")])
    assert isinstance(caught.value, RammerError) and isinstance(caught.value.__cause__, TypeError)
