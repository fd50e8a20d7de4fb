"""Layers of ONNX's own recurrent operators, as exporters write a recurrent network."""

import numpy as np
import onnx

from .onnx_tools.graph import OnnxGraph

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTION = np.array([1], np.int64)
"""The axis of a layer's result that holds its directions."""


def onnx_lstm(
    layers: int = 2,
    steps: int = 50,
    hidden: int = 32,
    batch: int = 1,
    seed: int = 0,
    *,
    kind: str = "LSTM",
    bidirectional: bool = False,
) -> onnx.ModelProto:
    """Build a stack of recurrent operators.

    Parameters
    ----------
    layers, steps : int
        At least 1.
    hidden : int
        Size of inputs, states and outputs.
    batch : int
    seed : int
        Of the weights, which are normal with variance 1 / hidden.
    kind : {"LSTM", "GRU", "RNN"}
    bidirectional : bool
        Whether each layer goes both ways; the next one reads both results.

    Returns
    -------
    onnx.ModelProto
        Input `x`, float32 [steps, batch, hidden]. Output `h`, the last layer's state after each step
        [steps, batch, hidden], or twice as wide.
    """
    graph = OnnxGraph(seed)
    below, inputs, directions = "x", hidden, 1 + bidirectional
    rows = GATES[kind] * hidden
    for i in range(layers):
        w = graph.weight(f"weights{i}", graph.he((directions, rows, inputs), 2 * hidden))
        r = graph.weight(f"recurrent{i}", graph.he((directions, rows, hidden), 2 * hidden))
        bias = graph.weight(f"bias{i}", graph.small(2 * rows * directions).reshape(directions, 2 * rows))
        direction = {"direction": "bidirectional"} if bidirectional else {}
        above = graph.node(kind, [below, w, r, bias], f"layer{i}", hidden_size=hidden, **direction)
        name = "h" if i == layers - 1 else f"h{i}"
        if bidirectional:  # [steps, directions, batch, hidden]
            beside = graph.node("Transpose", [above], f"beside{i}", perm=[0, 2, 1, 3])
            shape = graph.weight(f"shape{i}", np.array([steps, batch, 2 * hidden], np.int64))
            below, inputs = graph.node("Reshape", [beside, shape], name), 2 * hidden
        else:
            below = graph.node("Squeeze", [above, graph.weight(f"axis{i}", DIRECTION)], name)
    x, h = (steps, batch, hidden), (steps, batch, inputs)
    return graph.model(f"onnx_{kind.lower()}_{layers}x{steps}x{hidden}", {"x": x}, {"h": h})
