"""DeepSpeech 2 (Amodei et al., ICML 2016): two convolutions over a spectrogram, and one-way LSTM layers."""

import numpy as np
import onnx

from .onnx_tools.graph import OnnxGraph
from .onnx_tools.lstm_layer import LstmLayer, LstmState

FILTERS = 32


def deepspeech2(
    *,
    frames: int = 300,
    bins: int = 171,
    layers: int = 7,
    hidden: int = 256,
    classes: int = 29,
    batch: int = 1,
    fused_gates: bool = True,
    seed: int = 0,
) -> onnx.ModelProto:
    """Build the DeepSpeech 2 of Rammer's evaluation, table 2: TensorFlow's, with LSTM layers of one direction.

    Parameters
    ----------
    frames, bins : int
        Extents of the input `x`, float32 [batch, 1, frames, bins]. Each convolution halves the frames, the first one
        the bins; a quarter of the frames are the steps of the LSTM layers, 75 by default.
    layers, hidden : int
        Of the LSTM layers.
    classes : int
    batch : int
    fused_gates : bool
        Two products a cell, or eight.
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Output `y`, float32 [steps x batch, classes].
    """
    graph = OnnxGraph(seed)
    at = _conv(graph, "conv1", "x", (FILTERS, 1, 41, 11), (2, 2))
    at = _conv(graph, "conv2", at, (FILTERS, FILTERS, 21, 11), (2, 1))
    steps, features = (frames + 3) // 4, FILTERS * ((bins + 1) // 2)
    at = graph.node("Transpose", [at], "by_time", perm=[2, 0, 3, 1])
    shape = graph.weight("steps_shape", np.array([steps, batch, features], np.int64))
    at = graph.node("Reshape", [at, shape], "steps")
    parts = graph.nodes("Split", [at], [f"frame{t}" for t in range(steps)], axis=0)
    row = graph.weight("row_shape", np.array([batch, features], np.int64))
    below = [graph.node("Reshape", [part, row], f"x{t}") for t, part in enumerate(parts)]
    for i in range(layers):
        layer = LstmLayer(graph, str(i), hidden if i else features, hidden, fused_gates=fused_gates)
        state: LstmState | None = None
        above = []
        for t, x in enumerate(below):
            state = layer.step(t, x, state)
            above.append(state.h)
        below = above
    graph.dense("y", graph.node("Concat", below, "states", axis=0), hidden, classes)
    return graph.model(
        f"deepspeech2_{layers}x{steps}x{hidden}", {"x": (batch, 1, frames, bins)}, {"y": (steps * batch, classes)}
    )


def _conv(graph: OnnxGraph, name: str, source: str, shape: tuple[int, ...], strides: tuple[int, int]) -> str:
    """A convolution, its values between 0 and 6, and a scale and a shift for each filter, as batch norm leaves them."""
    filters, channels, height, width = shape
    weights = graph.weight(f"{name}_w", graph.he(shape, channels * height * width))
    pads = [height // 2, width // 2] * 2
    at = graph.node("Conv", [source, weights], f"{name}_sum", pads=pads, strides=strides)
    low, high = (graph.weight(f"{name}_{n}", np.array(n, np.float32)) for n in (0, 6))
    at = graph.node("Clip", [at, low, high], f"{name}_clip")
    scale = graph.weight(f"{name}_scale", graph.rng.uniform(0.7, 1.1, (filters, 1, 1)).astype(np.float32))
    shift = graph.weight(f"{name}_shift", graph.small(filters).reshape(filters, 1, 1))
    return graph.node("Add", [graph.node("Mul", [at, scale], f"{name}_mul"), shift], name)
