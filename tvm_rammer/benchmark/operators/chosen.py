"""Operators on as many rows, or images, as the data choose, as in the heads of detectors."""

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .plain import IR_VERSION, OPSET

_LIMIT = -100.0
"""Rows whose largest number is beyond it are chosen: all of them, but only the data say so."""


@dataclass(frozen=True, slots=True)
class ChosenOperator:
    """A dense layer, or a convolution with padding, of what is chosen; with a bias and a rectifier.

    Parameters
    ----------
    shape : tuple of int
        Of the data, the first of whose axes is chosen from.
    weights : tuple of int
        [inputs, outputs] of a layer, [filters, channels, rows, columns] of a convolution.
    """

    shape: tuple[int, ...]
    weights: tuple[int, ...]
    outputs: int = 1

    def model(self, seed: int = 0) -> onnx.ModelProto:
        """Build the model, with seeded normal weights."""
        rng, dense = np.random.default_rng(seed), len(self.weights) == 2
        terms = self.weights[0] if dense else math.prod(self.weights[1:])
        constants = {
            "w": rng.standard_normal(self.weights) / math.sqrt(terms),
            "b": rng.standard_normal(self.weights[1] if dense else self.weights[0]),
            "limit": np.array(_LIMIT),
        }
        last = (
            [helper.make_node("MatMul", ["r", "w"], ["sums"]), helper.make_node("Add", ["sums", "b"], ["added"])]
            if dense
            else [helper.make_node("Conv", ["r", "w", "b"], ["added"], pads=[n // 2 for n in self.weights[2:]] * 2)]
        )
        nodes = [
            helper.make_node("ReduceMax", ["x"], ["most"], axes=list(range(1, len(self.shape))), keepdims=0),
            helper.make_node("Greater", ["most", "limit"], ["chosen"]),
            helper.make_node("Compress", ["x", "chosen"], ["r"], axis=0),
            *last,
            helper.make_node("Relu", ["added"], ["y"]),
        ]
        graph = helper.make_graph(
            nodes,
            "operator",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


CHOSEN_OPERATORS = {
    "chosen: 10 rows, 2048x1024": ChosenOperator((10, 2048), (2048, 1024)),
    "chosen: 30 rows, 2048x1024": ChosenOperator((30, 2048), (2048, 1024)),
    "chosen: 100 rows, 12544x1024": ChosenOperator((100, 12544), (12544, 1024)),
    "chosen: 100 rows, 1024x364": ChosenOperator((100, 1024), (1024, 364)),
    "chosen: 300 rows, 1024x91": ChosenOperator((300, 1024), (1024, 91)),
    "chosen: 20 images, conv 3x3 256-256": ChosenOperator((20, 256, 14, 14), (256, 256, 3, 3)),
}
"""Single operators on what the data choose."""
