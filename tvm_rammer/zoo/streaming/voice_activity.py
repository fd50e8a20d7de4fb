"""Whether somebody speaks, frame by frame: a spectrum, convolutions over it, and an LSTM whose state is passed on."""

import numpy as np
import onnx

from ..onnx_tools.graph import OnnxGraph


def voice_activity(samples: int = 512, window: int = 256, hidden: int = 128, seed: int = 0) -> onnx.ModelProto:
    """Build a detector of voice activity of the size and form of those that run on phones.

    Parameters
    ----------
    samples : int
        Of a frame: a multiple of `window`.
    window : int
        Samples of a spectrum; the next one begins half as many later.
    hidden : int
        Channels of the last convolution, and units of the LSTM; a multiple of 2.
    seed : int
        Of the weights; those of the spectrum are random, too.

    Returns
    -------
    onnx.ModelProto
        Inputs `x`, float32 [1, samples], and the state `h` and `c` [1, 1, hidden], zero at the beginning. Outputs
        `voice` [1, 1], the probability of speech, and the next frame's state `h_next` and `c_next`.
    """
    graph = OnnxGraph(seed)
    bands, half = window // 2 + 1, hidden // 2
    sound = graph.node("Unsqueeze", ["x", _integers(graph, "channel", 1)], "sound")
    waves = _conv(graph, "waves", sound, (1, 2 * bands, window), stride=window // 2, bias=False)
    real, imaginary = graph.nodes("Split", [waves], ["real", "imaginary"], axis=1)
    squares = [graph.node("Mul", [part, part], f"{part}_squared") for part in (real, imaginary)]
    features = graph.node("Sqrt", [graph.node("Add", squares, "power")], "spectrum")
    for number, (inputs, filters, stride) in enumerate(
        ((bands, hidden, 1), (hidden, half, 2), (half, half, 2), (half, hidden, 1))
    ):
        features = _conv(graph, f"conv{number}", features, (inputs, filters, 3), stride=stride, pad=1)
        features = graph.node("Relu", [features], f"relu{number}")
    mean = graph.node("ReduceMean", [features], "mean", axes=[2], keepdims=0)
    step = graph.node("Unsqueeze", [mean, _integers(graph, "time", 0)], "step")
    w = graph.weight("lstm_w", graph.he((1, 4 * hidden, hidden), 2 * hidden))
    r = graph.weight("lstm_r", graph.he((1, 4 * hidden, hidden), 2 * hidden))
    b = graph.weight("lstm_b", graph.small(8 * hidden).reshape(1, 8 * hidden))
    graph.nodes("LSTM", [step, w, r, b, "", "h", "c"], ["", "h_next", "c_next"], hidden_size=hidden)
    last = graph.node("Squeeze", ["h_next", _integers(graph, "directions", 0)], "last")
    graph.node("Sigmoid", [graph.dense("score", last, hidden, 1)], "voice")
    state = (1, 1, hidden)
    return graph.model(
        "voice_activity", {"x": (1, samples), "h": state, "c": state},
        {"voice": (1, 1), "h_next": state, "c_next": state},
    )  # fmt: skip


def _integers(graph: OnnxGraph, name: str, *numbers: int) -> str:
    return graph.weight(name, np.array(numbers, np.int64))


def _conv(
    graph: OnnxGraph, name: str, source: str, shape: tuple[int, int, int], *, stride: int, pad: int = 0,
    bias: bool = True,
) -> str:  # fmt: skip
    """Add a convolution over time: input channels, filters, and length of a filter."""
    channels, filters, length = shape
    given = [source, graph.weight(f"{name}_w", graph.he((filters, channels, length), channels * length))]
    given += [graph.weight(f"{name}_b", graph.small(filters))] if bias else []
    return graph.node("Conv", given, name, strides=[stride], pads=[pad] * 2)
