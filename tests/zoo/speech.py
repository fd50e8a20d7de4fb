"""A small speech model: recurrent layers in both directions over frames, and letters of each frame."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def speech(frame=12, hidden=16, letters=7, layers=2, kind="LSTM"):
    """Frames [time, 1, frame] become the probabilities of letters, [time, 1, letters]; and the last states."""
    rng = np.random.default_rng(0)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    nodes, tensors = [], [numpy_helper.from_array(np.array([0, 0, -1]), "both")]

    def weights(name, *shape):
        tensors.append(numpy_helper.from_array((rng.standard_normal(shape) / shape[-1] ** 0.5).astype("float32"), name))
        return name

    x, width = "x", frame
    for n in range(layers):
        rows = gates * hidden
        given = [x, weights(f"w{n}", 2, rows, width), weights(f"r{n}", 2, rows, hidden), weights(f"b{n}", 2, 2 * rows)]
        nodes += [
            helper.make_node(kind, given, [f"y{n}", f"h{n}"], hidden_size=hidden, direction="bidirectional"),
            helper.make_node("Transpose", [f"y{n}"], [f"t{n}"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"t{n}", "both"], [f"x{n}"]),
        ]
        x, width = f"x{n}", 2 * hidden
    nodes += [
        helper.make_node("MatMul", [x, weights("wo", width, letters)], ["sum"]),
        helper.make_node("Add", ["sum", weights("bo", letters)], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"], axis=-1),
    ]
    value = helper.make_tensor_value_info
    last = f"h{layers - 1}"
    graph = helper.make_graph(
        nodes, "speech", [value("x", onnx.TensorProto.FLOAT, ["time", 1, frame])],
        [value("y", onnx.TensorProto.FLOAT, None), value(last, onnx.TensorProto.FLOAT, None)], tensors,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
