"""Models whose results are those of all their nodes, for values that code forgets."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import tvm_rammer


def model(nodes, arrays, constants=(), opset=20):
    """A model whose results are those of all its nodes; `nodes` are pairs of a call and its attributes."""
    made = [helper.make_node(op, names, [f"y{i}"], **more) for i, (op, names, more) in enumerate(nodes)]
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in arrays.items()
    ]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(len(made))]
    fixed = [numpy_helper.from_array(a, n) for n, a in dict(constants).items()]
    graph = helper.make_graph(made, "hostile", values, results, fixed)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def results(proto, arrays):
    got = tvm_rammer.compile(proto)(**arrays)
    return [np.asarray(y) for y in (got if isinstance(got, tuple) else (got,))]


def by_onnxruntime(proto, arrays):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, arrays)
