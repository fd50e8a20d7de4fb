"""Operators on as many rows, or images, as the data choose, as in the heads of detectors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from .plain import IR_VERSION, OPSET

_LIMIT = -100.0
"""Rows whose largest number is beyond it are chosen: all of them, but only the data say so."""
_GELU = (
    ("Mul", ["r", "root"], "scaled"), ("Erf", ["scaled"], "erf"), ("Add", ["erf", "one"], "shifted"),
    ("Mul", ["r", "shifted"], "doubled"), ("Mul", ["doubled", "half"], "y"),
)  # fmt: skip
_NUMBERS = {"root": math.sqrt(0.5), "one": 1.0, "half": 0.5}


@dataclass(frozen=True, slots=True)
class ChosenOperator:
    """What is computed of what is chosen.

    A dense layer, or a convolution with padding, with a bias and a rectifier; or a function of ONNX, with a weight and
    a bias for each channel where it has any, or Gelu as PyTorch used to write it.

    Parameters
    ----------
    shape : tuple of int
        Of the data, the first of whose axes is chosen from.
    weights : tuple of int
        [inputs, outputs] of a layer, [filters, channels, rows, columns] of a convolution, none of a function.
    function : str, optional
        Name of the function.
    """

    shape: tuple[int, ...]
    weights: tuple[int, ...] = ()
    function: str = ""
    outputs: int = 1

    def model(self, seed: int = 0) -> onnx.ModelProto:
        """Build the model, with seeded normal weights."""
        constants = {"limit": np.array(_LIMIT), **self._constants(np.random.default_rng(seed))}
        nodes = [
            helper.make_node("ReduceMax", ["x"], ["most"], axes=list(range(1, len(self.shape))), keepdims=0),
            helper.make_node("Greater", ["most", "limit"], ["chosen"]),
            helper.make_node("Compress", ["x", "chosen"], ["r"], axis=0),
            *self._nodes(),
        ]
        graph = helper.make_graph(
            nodes,
            "operator",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)

    def _constants(self, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        if self.function == "Gelu":
            return {name: np.array(number) for name, number in _NUMBERS.items()}
        if self.function:
            return {name: rng.standard_normal(self.shape[1]) for name in ("w", "b")}
        dense = len(self.weights) == 2
        terms = self.weights[0] if dense else math.prod(self.weights[1:])
        return {
            "w": rng.standard_normal(self.weights) / math.sqrt(terms),
            "b": rng.standard_normal(self.weights[1] if dense else self.weights[0]),
        }

    def _nodes(self) -> Sequence[NodeProto]:
        if self.function == "Gelu":
            return [helper.make_node(kind, inputs, [output]) for kind, inputs, output in _GELU]
        if self.function:
            inputs = ["r", "w", "b"] if self.function.endswith("Normalization") else ["r"]
            return [helper.make_node(self.function, inputs, ["y"])]
        relu = helper.make_node("Relu", ["added"], ["y"])
        if len(self.weights) == 2:
            product = helper.make_node("MatMul", ["r", "w"], ["sums"])
            return [product, helper.make_node("Add", ["sums", "b"], ["added"]), relu]
        pads = [n // 2 for n in self.weights[2:]] * 2
        return [helper.make_node("Conv", ["r", "w", "b"], ["added"], pads=pads), relu]


CHOSEN_OPERATORS = {
    "chosen: 10 rows, 2048x1024": ChosenOperator((10, 2048), (2048, 1024)),
    "chosen: 30 rows, 2048x1024": ChosenOperator((30, 2048), (2048, 1024)),
    "chosen: 100 rows, 12544x1024": ChosenOperator((100, 12544), (12544, 1024)),
    "chosen: 100 rows, 1024x364": ChosenOperator((100, 1024), (1024, 364)),
    "chosen: 300 rows, 1024x91": ChosenOperator((300, 1024), (1024, 91)),
    "chosen: 20 images, conv 3x3 256-256": ChosenOperator((20, 256, 14, 14), (256, 256, 3, 3)),
    "chosen: 50 images, sigmoid 91x28x28": ChosenOperator((50, 91, 28, 28), function="Sigmoid"),
    "chosen: 400 rows, gelu 1024": ChosenOperator((400, 1024), function="Gelu"),
    "chosen: 1000 rows, softmax 91": ChosenOperator((1000, 91), function="Softmax"),
    "chosen: 100 pieces, softmax 8x64x64": ChosenOperator((100, 8, 64, 64), function="Softmax"),
    "chosen: 50 images, norm 64x28x28": ChosenOperator((50, 64, 28, 28), function="InstanceNormalization"),
}
"""Single operators on what the data choose."""
