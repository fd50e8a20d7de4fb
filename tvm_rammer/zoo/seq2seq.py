"""Two stacks of LSTM cells, one after the other: an encoder, and a decoder that reads its own output."""

import onnx

from .onnx_tools.graph import OnnxGraph
from .onnx_tools.lstm_layer import LstmLayer, LstmState


def seq2seq(
    encoder: tuple[int, int] = (8, 100),
    decoder: tuple[int, int] = (4, 30),
    hidden: int = 128,
    *,
    batch: int = 1,
    fused_gates: bool = True,
    seed: int = 0,
) -> onnx.ModelProto:
    """Build the sequence-to-sequence model of Rammer's evaluation, table 2, unrolled.

    Parameters
    ----------
    encoder, decoder : (int, int)
        Layers and steps, at least 1.
    hidden : int
        Size of inputs, states and outputs.
    batch : int
    fused_gates : bool
        Two products a cell, or eight.
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Inputs `x0`, `x1`, ..., one a step of the encoder, float32 [batch, hidden]. The decoder starts from zero states
        with the cell state of the encoder's last layer, and each further step reads the output of the step before.
        Output `y`, float32 [batch, hidden]: the decoder's last.
    """
    graph = OnnxGraph(seed)
    below = [f"x{t}" for t in range(encoder[1])]
    for i in range(encoder[0]):
        layer = LstmLayer(graph, f"enc{i}", hidden, hidden, fused_gates=fused_gates)
        state: LstmState | None = None
        above = []
        for t, x in enumerate(below):
            state = layer.step(t, x, state)
            above.append(state.h)
        below = above
    assert state is not None
    _decode(graph, decoder, hidden, state.c, fused_gates)
    inputs = {f"x{t}": (batch, hidden) for t in range(encoder[1])}
    name = f"seq2seq_{encoder[0]}x{encoder[1]}_{decoder[0]}x{decoder[1]}x{hidden}"
    return graph.model(name, inputs, {"y": (batch, hidden)})


def _decode(graph: OnnxGraph, shape: tuple[int, int], hidden: int, word: str, fused_gates: bool) -> None:
    layers, steps = shape
    cells = [LstmLayer(graph, f"dec{i}", hidden, hidden, fused_gates=fused_gates) for i in range(layers)]
    states: list[LstmState | None] = [None] * layers
    for t in range(steps):
        for i, cell in enumerate(cells):
            last = t == steps - 1 and i == layers - 1
            state = states[i] = cell.step(t, word, states[i], h="y" if last else None)
            word = state.h
