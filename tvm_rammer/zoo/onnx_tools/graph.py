"""An ONNX model in the making: nodes that are named by what they compute, and seeded weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8

Shape = tuple[int | str, ...]


class OnnxGraph:
    """Collects the nodes and weights of a model; every method that adds a node returns the name of its result.

    Parameters
    ----------
    seed : int
        Of the weights: He's normals, so that activations keep their size, and small biases.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def weight(self, name: str, array: np.ndarray) -> str:
        """Add a constant tensor."""
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def he(self, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
        """Draw float32 normals of variance 2 / `fan_in`."""
        return np.asarray(self.rng.standard_normal(shape) * np.sqrt(2 / fan_in), np.float32)

    def small(self, length: int) -> np.ndarray:
        """Draw a small float32 bias."""
        return (0.1 * self.rng.standard_normal(length)).astype(np.float32)

    def node(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Add a node of one result."""
        return self.nodes(kind, inputs, [name], **attributes)[0]

    def nodes(self, kind: str, inputs: Sequence[str], names: Sequence[str], **attributes: Any) -> list[str]:
        """Add a node of several results."""
        self._nodes.append(helper.make_node(kind, list(inputs), list(names), **attributes))
        return list(names)

    def conv(
        self,
        name: str,
        source: str,
        shape: tuple[int, int, int],
        *,
        stride: int = 1,
        groups: int = 1,
        pad: int | None = None,
        relu: bool = True,
    ) -> str:
        """Add a square convolution with a bias, as batch norm leaves it, and maybe a rectifier.

        Parameters
        ----------
        shape : (int, int, int)
            Input channels, filters, kernel size.
        pad : int, optional
            On all sides; by default so much that stride 1 keeps the size.
        """
        channels, filters, kernel = shape
        fan_in = channels // groups * kernel * kernel
        weights = self.he((filters, channels // groups, kernel, kernel), fan_in)
        return self.conv_of(
            name, source, weights, self.small(filters), stride=stride, groups=groups, pad=pad, relu=relu
        )

    def conv_of(
        self,
        name: str,
        source: str,
        weights: np.ndarray,
        bias: np.ndarray,
        *,
        stride: int = 1,
        groups: int = 1,
        pad: int | None = None,
        relu: bool = True,
    ) -> str:
        """Add a convolution of given weights [filters, channels / groups, kernel, kernel] and bias [filters]."""
        pads = [weights.shape[-1] // 2 if pad is None else pad] * 4
        given = [source, self.weight(f"{name}_w", weights), self.weight(f"{name}_b", bias)]
        total = f"{name}_sum" if relu else name
        self.node("Conv", given, total, pads=pads, strides=[stride] * 2, group=groups)
        return self.node("Relu", [total], name) if relu else name

    def pool(self, kind: str, name: str, source: str, kernel: int, *, stride: int = 1, pad: int = 0) -> str:
        """Add a MaxPool or an AveragePool; the average is over what lies within the image."""
        return self.node(kind, [source], name, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def dense(self, name: str, source: str, inputs: int, outputs: int) -> str:
        """Add a product of [batch, inputs] with weights, and a bias."""
        weights = self.weight(f"{name}_w", self.he((inputs, outputs), inputs))
        return self.node("Gemm", [source, weights, self.weight(f"{name}_b", self.small(outputs))], name)

    def model(self, name: str, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]) -> onnx.ModelProto:
        """Finish: a model of float32 inputs and outputs of these shapes."""
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            self._weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
