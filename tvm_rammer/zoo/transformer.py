"""A transformer encoder of primitive operators, as text models have them (Attention Is All You Need, 3.1)."""

import numpy as np
import onnx

from .onnx_tools.graph import OnnxGraph


def transformer_encoder(
    layers: int = 2, tokens: int = 32, width: int = 128, heads: int = 4, seed: int = 0
) -> onnx.ModelProto:
    """Build an encoder whose layers normalise first.

    Parameters
    ----------
    layers, tokens : int
        At least 1.
    width : int
        Of a token; a multiple of `heads`. The layer between has four times as many.
    heads : int
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Input `x`, float32 [1, tokens, width]; output `y` of the same shape. Operators: LayerNormalization, MatMul, Add,
        Reshape, Transpose, Mul, Softmax, Erf, Div.
    """
    graph = OnnxGraph(seed)
    each = width // heads
    split = graph.weight("split", np.array([1, tokens, heads, each], np.int64))
    joined = graph.weight("joined", np.array([1, tokens, width], np.int64))
    scale = graph.weight("scale", np.array(each**-0.5, np.float32))

    def linear(name: str, source: str, inputs: int, outputs: int) -> str:
        weights = graph.weight(f"{name}_w", graph.he((inputs, outputs), 2 * inputs))
        product = graph.node("MatMul", [source, weights], f"{name}_product")
        return graph.node("Add", [product, graph.weight(f"{name}_b", graph.small(outputs))], name)

    def normalised(name: str, source: str) -> str:
        gain, bias = (
            graph.weight(f"{name}_gain", np.ones(width, np.float32)),
            graph.weight(f"{name}_bias", graph.small(width)),
        )
        return graph.node("LayerNormalization", [source, gain, bias], name, axis=-1)

    def head(name: str, source: str, order: tuple[int, ...]) -> str:
        parts = graph.node("Reshape", [linear(name, source, width, width), split], f"{name}_parts")
        return graph.node("Transpose", [parts], f"{name}_heads", perm=order)

    x = "x"
    for i in range(layers):
        y = normalised(f"before{i}", x)
        q, v = (head(f"{name}{i}", y, (0, 2, 1, 3)) for name in "qv")
        scores = graph.node("MatMul", [q, head(f"k{i}", y, (0, 2, 3, 1))], f"scores{i}")
        shares = graph.node("Softmax", [graph.node("Mul", [scores, scale], f"scaled{i}")], f"shares{i}", axis=-1)
        found = graph.node(
            "Transpose", [graph.node("MatMul", [shares, v], f"found{i}")], f"turned{i}", perm=(0, 2, 1, 3)
        )
        out = linear(f"out{i}", graph.node("Reshape", [found, joined], f"together{i}"), width, width)
        x = graph.node("Add", [x, out], f"attended{i}")
        wide = linear(f"wide{i}", normalised(f"between{i}", x), width, 4 * width)
        out = linear(f"narrow{i}", _gelu(graph, wide, str(i)), 4 * width, width)
        x = graph.node("Add", [x, out], "y" if i == layers - 1 else f"layer{i}")
    return graph.model(f"transformer_{layers}x{tokens}x{width}", {"x": (1, tokens, width)}, {"y": (1, tokens, width)})


def _gelu(graph: OnnxGraph, source: str, name: str) -> str:
    """x (1 + erf(x / sqrt 2)) / 2, as exporters of opset 17 write it."""
    root, one, half = (
        graph.weight(f"{label}{name}", np.array(value, np.float32))
        for label, value in (("root", 2**0.5), ("one", 1), ("half", 0.5))
    )
    erf = graph.node("Erf", [graph.node("Div", [source, root], f"over{name}")], f"erf{name}")
    return graph.node(
        "Mul",
        [graph.node("Mul", [source, graph.node("Add", [erf, one], f"more{name}")], f"twice{name}"), half],
        f"gelu{name}",
    )
