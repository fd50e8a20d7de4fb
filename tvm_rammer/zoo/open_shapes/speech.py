"""A speech model of any number of frames: recurrent layers in both directions, and the letters of each frame."""

import numpy as np
import onnx

from ..onnx_lstm import GATES
from ..onnx_tools.graph import OnnxGraph


def speech(
    frame: int = 12, hidden: int = 16, letters: int = 7, layers: int = 2, kind: str = "LSTM", seed: int = 0
) -> onnx.ModelProto:
    """Build a recurrent network over frames.

    Parameters
    ----------
    frame : int
        Features of a frame.
    hidden : int
        Units of each direction of a layer.
    letters : int
        Classes of a frame.
    layers : int
        At least 1.
    kind : {"LSTM", "GRU", "RNN"}
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Input `x`, float32 ["time", 1, frame]. Outputs `y` ["time", 1, letters], the probabilities of each frame's
        letters, and the last layer's last states [2, 1, hidden].
    """
    graph = OnnxGraph(seed)
    rows, below, width = GATES[kind] * hidden, "x", frame
    both = graph.weight("both", np.array([0, 0, -1], np.int64))
    for n in range(layers):
        w = graph.weight(f"w{n}", graph.he((2, rows, width), 2 * width))
        r = graph.weight(f"r{n}", graph.he((2, rows, hidden), 2 * hidden))
        b = graph.weight(f"b{n}", graph.small(4 * rows).reshape(2, 2 * rows))
        layer = {"hidden_size": hidden, "direction": "bidirectional"}
        above, _ = graph.nodes(kind, [below, w, r, b], [f"y{n}", f"h{n}"], **layer)
        beside = graph.node("Transpose", [above], f"t{n}", perm=[0, 2, 1, 3])
        below, width = graph.node("Reshape", [beside, both], f"x{n}"), 2 * hidden
    product = graph.node("MatMul", [below, graph.weight("wo", graph.he((width, letters), width))], "sum")
    scores = graph.node("Add", [product, graph.weight("bo", graph.small(letters))], "scores")
    graph.node("Softmax", [scores], "y", axis=-1)
    return graph.model(
        "speech", {"x": ("time", 1, frame)}, {"y": ("time", 1, letters), f"h{layers - 1}": (2, 1, hidden)}
    )
