"""Cases that misbehave on purpose, so that tests see what the fuzzer makes of it."""

import os
import time

import numpy as np
from onnx import TensorProto, helper

from .case import ModelCase

MISDEEDS = ("right", "wrong", "foreign", "crash", "hang")


def injected_case(seed: int) -> ModelCase:
    """A model of three nodes; what the compiler makes of it follows from the seed, by `MISDEEDS`."""
    nodes = [helper.make_node(op, [x], [y]) for op, x, y in (("Abs", "x", "a"), ("Neg", "a", "b"), ("Relu", "b", "y"))]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph(nodes, MISDEEDS[seed % len(MISDEEDS)], ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return ModelCase("injected", seed, model.SerializeToString(), {"x": np.arange(4, dtype="float32")})


def compile_badly(misdeed: str, has_neg: bool, results: list[np.ndarray]) -> list[np.ndarray]:
    """What stands for the compiler: only models with a Neg fare ill."""
    if not has_neg or misdeed == "right":
        return results
    if misdeed == "wrong":
        return [r + 1 for r in results]
    if misdeed == "crash":
        os.abort()
    if misdeed == "hang":
        time.sleep(1e6)
    raise KeyError("no kernel for 'Neg' at 0x7f01")
