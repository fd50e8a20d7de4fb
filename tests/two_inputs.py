"""A model of two inputs and two results, with arrays for it and what they give."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def two_inputs(batch=2):
    """y = relu(x @ w + b), z = x @ w."""
    rng = np.random.default_rng(0)
    w = numpy_helper.from_array(rng.standard_normal((16, 32)).astype("float32"), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Add", ["z", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 16]),
        helper.make_tensor_value_info("b", TensorProto.FLOAT, [batch, 32]),
    ]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, 32]) for n in ("y", "z")]
    graph = helper.make_graph(nodes, "two_inputs", inputs, outputs, [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def arrays():
    """Values of the inputs x and b."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((2, 16)).astype("float32"), rng.standard_normal((2, 32)).astype("float32")


def results(x, b):
    """Both results, by NumPy."""
    w = np.random.default_rng(0).standard_normal((16, 32)).astype("float32")
    z = x @ w
    return np.maximum(z + b, 0), z


def agrees(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy() if hasattr(a, "numpy") else a, b, rtol=1e-4, atol=1e-5)
