"""Models of one operator, for tests of the fuzzer itself."""

from onnx import TensorProto, helper


def model_of(op, shape=(3,), **attributes):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], **attributes)], "one", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
