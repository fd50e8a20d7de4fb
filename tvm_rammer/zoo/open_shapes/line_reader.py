"""A reader of text lines of any width: convolutions, a bidirectional LSTM, and a fully connected layer (CRNN)."""

import numpy as np
import onnx

from ..onnx_tools.graph import OnnxGraph

CHANNELS = 3


def line_reader(
    height: int = 48, filters: int = 16, hidden: int = 48, letters: int = 97, layers: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """Build a CRNN (Shi et al., "An End-to-End Trainable Neural Network for Image-based Sequence Recognition", 2015).

    Parameters
    ----------
    height : int
        Of the image; a multiple of 16.
    filters : int
        Of the first convolution; the others have two, four and eight times as many.
    hidden : int
        Units of each direction of an LSTM.
    letters : int
        Classes, the blank of CTC included.
    layers : int
        LSTMs, one above the other.
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Input `x`, float32 [1, 3, height, "width"]. Output `scores` [steps, 1, letters], the logarithms of each step's
        probabilities; a step is four columns.
    """
    graph = OnnxGraph(seed)
    image = graph.conv("conv0", "x", (CHANNELS, filters, 3), stride=2)
    image = graph.conv("conv1", image, (filters, 2 * filters, 3))
    image = graph.pool("MaxPool", "pool1", image, 2, stride=2)
    for number, wide in enumerate((4 * filters, 8 * filters), 2):
        image = graph.conv(f"conv{number}", image, (wide // 2, wide, 3))
        image = graph.node(
            "MaxPool", [image], f"pool{number}", kernel_shape=[2, 1], strides=[2, 1]
        )  # halves the height alone
    rows = height // 16
    features = 8 * filters * rows
    flat = graph.node("Reshape", [image, graph.weight("as_columns", np.array([1, features, -1], np.int64))], "columns")
    below = graph.node("Transpose", [flat], "sequence", perm=[2, 0, 1])  # [steps, 1, features]
    for number in range(layers):
        below = _lstm(graph, f"lstm{number}", below, features if number == 0 else 2 * hidden, hidden)
    weights = graph.weight("letters_w", graph.he((2 * hidden, letters), 2 * hidden))
    sums = graph.node("MatMul", [below, weights], "letters_product")
    sums = graph.node("Add", [sums, graph.weight("letters_b", graph.small(letters))], "letters")
    graph.node("LogSoftmax", [sums], "scores", axis=-1)
    return graph.model("line_reader", {"x": (1, CHANNELS, height, "width")}, {"scores": ("steps", 1, letters)})


def _lstm(graph: OnnxGraph, name: str, below: str, inputs: int, hidden: int) -> str:
    """Add a bidirectional LSTM; its result is [steps, 1, 2 x hidden]."""
    w = graph.weight(f"{name}_w", graph.he((2, 4 * hidden, inputs), 2 * inputs))
    r = graph.weight(f"{name}_r", graph.he((2, 4 * hidden, hidden), 2 * hidden))
    b = graph.weight(f"{name}_b", graph.small(16 * hidden).reshape(2, 8 * hidden))
    both = graph.node("LSTM", [below, w, r, b], name, hidden_size=hidden, direction="bidirectional")
    together = graph.node("Transpose", [both], f"{name}_by_step", perm=[0, 2, 1, 3])  # [steps, 1, 2, hidden]
    return graph.node("Reshape", [together, graph.weight(f"{name}_as", np.array([0, 0, -1], np.int64))], f"{name}_out")
