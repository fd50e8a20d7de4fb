"""Tiny ONNX models, and what the tests ask about modules."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tvm import relax


def rng(seed=0):
    return np.random.default_rng(seed)


def random(*shape, seed=0):
    return rng(seed).standard_normal(shape).astype("float32")


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def value(name, shape, elem=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, ir=8, **more):
    """A ModelProto of the given nodes; a string among the outputs is one of unknown shape."""
    outputs = [value(o, None) if isinstance(o, str) else o for o in outputs]
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers), **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


node = helper.make_node


def with_contrib(proto):
    """The model, which may have operators of ONNX Runtime's own from now on."""
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def by_onnxruntime(proto, **inputs):
    """What ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, inputs)


def calls(mod, name="main"):
    """The bindings of a function that are calls."""
    return [b.value for block in mod[name].body.blocks for b in block.bindings if isinstance(b.value, relax.Call)]


def op_names(mod, name="main"):
    """The names of the operators or PrimFuncs that a function calls, in order."""
    return [
        call.args[0].name_hint if call.op.name == "relax.call_tir" else call.op.name.removeprefix("relax.")
        for call in calls(mod, name)
    ]
