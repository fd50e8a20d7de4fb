"""Layers of floating-point numbers that are quantised before and after (QDQ), as quantised operators.

So their products are those of bytes. DequantizeLinear of weights is folded otherwise.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...inline import all_nodes
from ...read import MICROSOFT

_LAYERS = {"Conv": "QLinearConv", "MatMul": "QLinearMatMul", "Gemm": "QGemm"}
_CHANNELS = {"Conv": (0, -4), "MatMul": (1, -1)}
"""The axis of the weights' channels."""
_DOMAINS = ("", "ai.onnx")


def join_quantised(model: onnx.ModelProto) -> None:
    """Put quantised operators into the place of DequantizeLinear, Conv, MatMul or Gemm, and QuantizeLinear, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        What becomes unused stays.
    """
    graph = model.graph
    found = _Graph(graph)
    replaced: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        if (joined := found.joined(node)) is not None:
            replaced[node.output[0]] = joined
    if not replaced:
        return
    nodes = [replaced.get(node.output[0], node) if node.output else node for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    if all(known.domain != MICROSOFT for known in model.opset_import):
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))


class _Graph:
    """Who makes the values of a graph, and how often each is used."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._constants: Mapping[str, onnx.TensorProto] = {tensor.name: tensor for tensor in graph.initializer}
        self._makers = {name: node for node in graph.node for name in node.output}
        self._uses = Counter(name for node in all_nodes(graph) for name in node.input)
        self._uses.update(value.name for value in graph.output)

    def joined(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """The operator in the place of a QuantizeLinear; None where what it reads is no such layer."""
        layer = self._makers.get(node.input[0]) if _is(node, "QuantizeLinear") else None
        if layer is None or layer.domain not in _DOMAINS or layer.op_type not in _LAYERS:
            return None
        if self._uses[layer.output[0]] != 1 or not self._is_plain(node, channels=()):
            return None
        data, weights = (self._makers.get(name) for name in layer.input[:2])
        channels = _channels(layer)
        if data is None or weights is None or not _is(data, "DequantizeLinear") or not _is(weights, "DequantizeLinear"):
            return None
        if not self._is_plain(data, channels=()) or not self._is_plain(weights, channels=channels):
            return None
        if self._array(weights.input[0]) is None or (layer.op_type == "Gemm" and not _is_plain_gemm(layer)):
            return None
        bias = self._bias(layer, data, weights)
        if bias is None:
            return None
        return _quantised(layer, [*data.input, *weights.input], list(node.input[1:]), bias, node.output[0])

    def _array(self, name: str) -> np.ndarray | None:
        tensor = self._constants.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def _is_plain(self, node: onnx.NodeProto, channels: tuple[int, ...]) -> bool:
        """Whether scale and zero point are known, of float32 and bytes, and one for all or for each of the channels."""
        if len(node.input) != 3 or any(a.name in ("block_size", "output_dtype") and a.i for a in node.attribute):
            return False
        scale, zero = (self._array(name) for name in node.input[1:])
        if scale is None or zero is None or scale.dtype != np.float32 or zero.dtype not in (np.uint8, np.int8):
            return False
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        return scale.size == zero.size == 1 or axis in channels

    def _bias(self, layer: onnx.NodeProto, data: onnx.NodeProto, weights: onnx.NodeProto) -> list[str] | None:
        """The bias as int32, in a list, empty without one; None where it has another scale than the products."""
        if len(layer.input) < 3 or not layer.input[2]:
            return []
        bias = self._makers.get(layer.input[2])
        if bias is None or not _is(bias, "DequantizeLinear"):
            return None
        numbers, scale = (self._array(name) for name in bias.input[:2])
        zero = self._array(bias.input[2]) if len(bias.input) > 2 and bias.input[2] else np.zeros(1)
        factors = [self._array(node.input[1]) for node in (data, weights)]
        if numbers is None or numbers.dtype != np.int32 or scale is None or zero is None or zero.any():
            return None
        if factors[0] is None or factors[1] is None or numbers.ndim != 1:
            return None
        same = np.allclose(scale.ravel(), (factors[0] * factors[1]).ravel(), rtol=1e-5, atol=0)
        return [bias.input[0]] if same else None


def _is(node: onnx.NodeProto, kind: str) -> bool:
    return node.domain in _DOMAINS and node.op_type == kind


def _channels(layer: onnx.NodeProto) -> tuple[int, ...]:
    if layer.op_type == "Gemm":
        return (0, -2) if _attribute(layer, "transB", 0) else (1, -1)
    return _CHANNELS[layer.op_type]


def _attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    return next((float(helper.get_attribute_value(a)) for a in node.attribute if a.name == name), default)


def _is_plain_gemm(layer: onnx.NodeProto) -> bool:
    return not _attribute(layer, "transA", 0) and _attribute(layer, "alpha", 1) == 1 == _attribute(layer, "beta", 1)


def _quantised(
    layer: onnx.NodeProto, factors: list[str], result: list[str], bias: list[str], output: str
) -> onnx.NodeProto:
    """The quantised operator; `factors` and `result` are names of numbers, scales and zero points."""
    kind = _LAYERS[layer.op_type]
    if kind == "QGemm":
        turned = int(_attribute(layer, "transB", 0))
        inputs = [*factors, *(bias or [""]), *result]
        return helper.make_node(kind, inputs, [output], layer.name, domain=MICROSOFT, transB=turned)
    made = helper.make_node(kind, [*factors, *result, *bias], [output], layer.name)
    made.attribute.extend(layer.attribute)
    return made
