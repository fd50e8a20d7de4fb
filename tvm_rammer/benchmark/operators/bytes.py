"""Operators of bytes to measure, as ONNX Runtime's quantiser writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSION, OPSET = 8, 17

_SCALE, _ZERO = np.float32(0.02), np.uint8(120)
_WEIGHT_SCALE, _RESULT_SCALE = np.float32(0.004), np.float32(0.05)


@dataclass(frozen=True, slots=True)
class BytesOperator:
    """A product, or a convolution, of bytes with constant ones.

    Parameters
    ----------
    kind : {"MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "dynamic"}
        The last one is a product of float32 that is quantised by its range: DynamicQuantizeLinear, MatMulInteger, Cast,
        Mul.
    shape, weights : tuple of int
        Of the data, and of the constant.
    unsigned : bool
        Whether the weights are unsigned bytes, with a zero point of 121; else signed ones, with none.
    pads : sequence of int
        Of a convolution.
    """

    kind: str
    shape: tuple[int, ...]
    weights: tuple[int, ...]
    unsigned: bool = False
    pads: Sequence[int] = ()
    outputs: int = 1

    def model(self, seed: int = 0) -> onnx.ModelProto:
        """Build the model, with seeded weights over all bytes."""
        dtype = np.uint8 if self.unsigned else np.int8
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        numbers = np.random.default_rng(seed).integers(least, most, self.weights, endpoint=True)
        constants = {
            "w": numbers.astype(dtype), "wz": dtype(121 if self.unsigned else 0), "ws": _WEIGHT_SCALE,
            "xz": _ZERO, "xs": _SCALE, "ys": _RESULT_SCALE, "yz": np.uint8(128),
        }  # fmt: skip
        attributes: dict[str, Any] = {"pads": list(self.pads)} if self.pads else {}
        if self.kind == "dynamic":
            nodes = [
                helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
                helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["sums"]),
                helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
                helper.make_node("Mul", ["s", "ws"], ["scale"]),
                helper.make_node("Mul", ["real", "scale"], ["y"]),
            ]
        elif self.kind.startswith("QLinear"):
            nodes = [helper.make_node(self.kind, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], **attributes)]
        else:
            nodes = [helper.make_node(self.kind, ["x", "w", "xz", "wz"], ["y"], **attributes)]
        given = made = TensorProto.FLOAT if self.kind == "dynamic" else TensorProto.UINT8
        if self.kind in ("MatMulInteger", "ConvInteger"):
            made = TensorProto.INT32
        graph = helper.make_graph(
            nodes,
            "operator",
            [helper.make_tensor_value_info("x", given, self.shape)],
            [helper.make_tensor_value_info("y", made, None)],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return onnx.shape_inference.infer_shapes(model)


BYTES_OPERATORS = {
    "bytes: product 128x768x768": BytesOperator("MatMulInteger", (128, 768), (768, 768)),
    "bytes: product, unsigned weights": BytesOperator("MatMulInteger", (128, 768), (768, 768), unsigned=True),
    "bytes: row 1x1024x4096": BytesOperator("MatMulInteger", (1, 1024), (1024, 4096)),
    "bytes: dynamic 128x768x768": BytesOperator("dynamic", (128, 768), (768, 768)),
    "bytes: QLinearMatMul": BytesOperator("QLinearMatMul", (128, 768), (768, 768)),
    "bytes: QLinearConv 3x3 64-64": BytesOperator("QLinearConv", (1, 64, 28, 28), (64, 64, 3, 3), pads=(1,) * 4),
    "bytes: QLinearConv 3x3 61-64": BytesOperator("QLinearConv", (1, 61, 28, 28), (64, 61, 3, 3), pads=(1,) * 4),
    "bytes: QLinearConv 1x1 256-128": BytesOperator("QLinearConv", (1, 256, 28, 28), (128, 256, 1, 1)),
    "bytes: ConvInteger 3x3 64-64": BytesOperator("ConvInteger", (1, 64, 28, 28), (64, 64, 3, 3), pads=(1,) * 4),
}
"""Single operators of bytes."""
