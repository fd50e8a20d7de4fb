"""Tiny ONNX models, and what the tests ask about modules."""

import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_NAMES = sorted(path.stem.removeprefix("light_") for path in LIGHT.glob("light_*.onnx"))


def light(name):
    """The path of one of onnx's light models."""
    return LIGHT / f"light_{name}.onnx"


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


def randomised(name):
    """A light model with random weights for its ConstantOfShape nodes, cut before its last softmax."""
    proto = onnx.load(light(name))
    graph, draw = proto.graph, rng()
    known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    nodes = []
    for n in graph.node:
        if n.op_type == "ConstantOfShape":
            shape = known[n.input[0]]
            scale = (2 / max(1, np.prod(shape[1:]))) ** 0.5
            weights = draw.standard_normal(shape)
            weights = weights * scale if len(shape) > 1 else np.abs(weights) + 0.5
            graph.initializer.append(tensor(n.output[0], weights.astype("float32")))
        elif n.op_type == "Softmax":
            graph.output[0].name = n.input[0]
            graph.output[0].type.tensor_type.ClearField("shape")
            break
        else:
            nodes.append(n)
    del graph.node[:]
    graph.node.extend(nodes)
    used = {i for n in nodes for i in n.input}
    tensors = [t for t in graph.initializer if t.name in used]
    inputs = [i for i in graph.input if i.name in used]
    del graph.initializer[:], graph.input[:]
    graph.initializer.extend(tensors)
    graph.input.extend(inputs)
    return proto
