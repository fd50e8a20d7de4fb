"""A stack of LSTM cells, unrolled over time, of primitive operators: its ready cells lie on a diagonal."""

import onnx

from .onnx_tools.graph import OnnxGraph
from .onnx_tools.lstm_layer import LstmLayer, LstmState


def lstm_stack(
    layers: int, steps: int, hidden: int, batch: int = 1, seed: int = 0, *, fused_gates: bool = True
) -> onnx.ModelProto:
    """Build an unrolled stack of LSTM cells.

    Parameters
    ----------
    layers, steps : int
        At least 1. The cell of layer l at step t reads the cells (l - 1, t) and (l, t - 1).
    hidden : int
        Size of inputs, states and outputs.
    batch : int
    seed : int
        Of the weights, which are normal with variance 1 / hidden.
    fused_gates : bool
        Two products a cell, with the weights of all gates. Otherwise eight, as in Rammer's evaluation.

    Returns
    -------
    onnx.ModelProto
        Inputs `x0`, `x1`, ..., one a step, float32 [batch, hidden]. Output `h`, the last layer's state after the last
        step. Operators: MatMul, Add, Split, Sigmoid, Tanh, Mul. States start at zero, so the first step has no
        product with the previous state.
    """
    graph = OnnxGraph(seed)
    below = [f"x{t}" for t in range(steps)]
    for i in range(layers):
        layer = LstmLayer(graph, str(i), hidden, hidden, fused_gates=fused_gates)
        state: LstmState | None = None
        above = []
        for t, x in enumerate(below):
            last = i == layers - 1 and t == steps - 1
            state = layer.step(t, x, state, h="h" if last else None)
            above.append(state.h)
        below = above
    inputs = {f"x{t}": (batch, hidden) for t in range(steps)}
    return graph.model(f"lstm_{layers}x{steps}x{hidden}", inputs, {"h": (batch, hidden)})
