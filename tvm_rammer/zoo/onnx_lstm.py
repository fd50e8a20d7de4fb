"""Layers of ONNX's own LSTM operator, as exporters write a recurrent network."""

import numpy as np
import onnx

from .onnx_tools.graph import OnnxGraph

DIRECTION = np.array([1], np.int64)
"""The axis of an LSTM's result that holds its directions."""


def onnx_lstm(layers: int = 2, steps: int = 50, hidden: int = 32, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """Build a stack of LSTM operators.

    Parameters
    ----------
    layers, steps : int
        At least 1.
    hidden : int
        Size of inputs, states and outputs.
    batch : int
    seed : int
        Of the weights, which are normal with variance 1 / hidden.

    Returns
    -------
    onnx.ModelProto
        Input `x`, float32 [steps, batch, hidden]. Output `h`, the last layer's state after each step
        [steps, batch, hidden].
    """
    graph = OnnxGraph(seed)
    below = "x"
    for i in range(layers):
        w, r = (
            graph.weight(f"{name}{i}", graph.he((1, 4 * hidden, hidden), 2 * hidden))
            for name in ("weights", "recurrent")
        )
        bias = graph.weight(f"bias{i}", graph.small(8 * hidden)[None])
        above = graph.node("LSTM", [below, w, r, bias], f"layer{i}", hidden_size=hidden)  # [steps, 1, batch, hidden]
        axis = graph.weight(f"axis{i}", DIRECTION)
        below = graph.node("Squeeze", [above, axis], "h" if i == layers - 1 else f"h{i}")
    shape = (steps, batch, hidden)
    return graph.model(f"onnx_lstm_{layers}x{steps}x{hidden}", {"x": shape}, {"h": shape})
