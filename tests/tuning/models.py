"""Small functions to tune, and outcomes that cost nothing."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tvm.relax import op

from tests.functions import fused
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen import construct
from tvm_rammer.rkernel_gen.tiling import Function
from tvm_rammer.tuning.tasks import Task
from tvm_rammer.tuning.trial import Outcome, Trial

CPU = host_cpu()


def relu_task(shape=(64, 64), name="relu"):
    return task_of(fused([shape], op.nn.relu), 1, name)


def matmul_task(rows=8, inner=16, columns=32):
    return task_of(fused([(rows, inner), (inner, columns)], op.matmul), 2, "matmul", frozenset({1}))


def task_of(func, num_inputs, name, constants=frozenset(), calls=1):
    function = Function(name, func, CPU, constants)
    return Task(function, num_inputs, calls, construct.space(function))


def trial_of(task, number=0):
    tiling = task.space[number]
    return Trial(task, tiling, construct.build(task.function, tiling))


def outcome(us=5.0):
    return Outcome((us, us + 1.0, us + 2.0), us / 2)


def small_model():
    """Two products of different size, a relu that is called twice, a softmax."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("v", (16, 64)), ("w", (64, 32)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (8, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (8, 32))],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model
