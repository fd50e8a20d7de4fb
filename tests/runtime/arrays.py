"""Arrays and a model for tests of bound modules."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def equal(found, wanted):
    return all(
        np.array_equal(a, b) for one, other in zip(found, wanted, strict=True) for a, b in zip(one, other, strict=True)
    )


def aligned(shape, dtype="float32", away=0):
    """An array whose address is so many bytes from a multiple of 64."""
    storage = np.zeros(np.prod(shape, dtype=int) * np.dtype(dtype).itemsize + 128, np.uint8)
    begin = -storage.ctypes.data % 64 + away
    return storage[begin : begin + np.prod(shape, dtype=int) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


def product(size=256):
    """state_next = w @ state, y = x + state_next; also the input itself, and a result for a second time.

    Each row of the next state needs all rows of the state: whoever writes it there before all are read is wrong.
    """
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype("float32") / 8
    w = numpy_helper.from_array(weights, "w")
    nodes = [
        helper.make_node("MatMul", ["w", "state"], ["state_next"]),
        helper.make_node("Add", ["x", "state_next"], ["y"]),
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Identity", ["y"], ["again"]),
    ]

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, size])

    outputs = [value(n) for n in ("same", "y", "state_next", "again")]
    graph = helper.make_graph(nodes, "product", [value("x"), value("state")], outputs, [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
