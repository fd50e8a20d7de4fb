"""ResNeXt (Xie et al., CVPR 2017): blocks of `cardinality` parallel branches."""

from collections.abc import Sequence

import numpy as np
import onnx

from .onnx_tools.graph import OnnxGraph


def resnext(
    blocks: Sequence[int] = (3, 3, 3),
    *,
    cardinality: int = 16,
    width: int = 64,
    channels: int = 256,
    stem: int = 64,
    size: int = 32,
    classes: int = 10,
    batch: int = 1,
    imagenet: bool = False,
    grouped: bool = False,
    seed: int = 0,
) -> onnx.ModelProto:
    """Build a ResNeXt for inference, batch norm folded into the convolutions.

    Parameters
    ----------
    blocks : sequence of int
        Blocks of each stage. Every stage but the first halves the size, and doubles width and channels.
    cardinality, width : int
        Branches of a block, and channels of a branch in the first stage.
    channels, stem : int
        Channels after the first stage, and after the first convolution.
    size : int
        Height and width of the input `x`, float32 [batch, 3, size, size].
    classes : int
        The output `y` is float32 [batch, classes], without a softmax.
    batch : int
    imagenet : bool
        A 7x7 convolution of stride 2 and a pool come first, and a shortcut that changes shape is a 1x1 convolution.
        For CIFAR a 3x3 convolution comes first, and such a shortcut is an average pool padded with zero channels.
    grouped : bool
        Each block in three convolutions, the second in groups. Otherwise each branch is two convolutions of its
        own, as in Rammer's evaluation: 298 convolutions in ResNeXt-29 (16x64d). Both compute the same.
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
    """
    graph = OnnxGraph(seed)
    depth = 2 + 3 * sum(blocks)
    if imagenet:
        at = graph.conv("stem", "x", (3, stem, 7), stride=2, pad=3)
        at = graph.pool("MaxPool", "stem_pool", at, 3, stride=2, pad=1)
    else:
        at = graph.conv("stem", "x", (3, stem, 3))
    in_channels = stem
    for stage, count in enumerate(blocks):
        out_channels = channels << stage
        for i in range(count):
            stride = 2 if stage and not i else 1
            name = f"s{stage}b{i}"
            side = _shortcut(graph, name, at, in_channels, out_channels, stride, imagenet)
            inner = _branches(graph, name, at, (in_channels, cardinality, width << stage), stride, grouped)
            inside = cardinality * (width << stage)
            # Small, so that sums of many blocks do not grow with the depth.
            weights = graph.he((out_channels, inside, 1, 1), inside * depth)
            last = graph.conv_of(f"{name}_out", inner, weights, graph.small(out_channels), relu=False)
            at = graph.node("Relu", [graph.node("Add", [last, side], f"{name}_add")], name)
            in_channels = out_channels
    mean = graph.node("Flatten", [graph.node("GlobalAveragePool", [at], "mean")], "features")
    graph.dense("y", mean, in_channels, classes)
    form = "grouped" if grouped else "branches"
    shapes = {"x": (batch, 3, size, size)}, {"y": (batch, classes)}
    return graph.model(f"resnext{depth}_{cardinality}x{width}d_{form}", *shapes)


def resnext29(*, grouped: bool = False, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """Build ResNeXt-29 (16x64d) for CIFAR-10, 68 million weights: Rammer's evaluation, table 2."""
    return resnext(grouped=grouped, batch=batch, seed=seed)


def resnext101(*, grouped: bool = False, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """Build ResNeXt-101 (64x4d) for ImageNet: 4,262 convolutions where each branch has its own."""
    return resnext(
        (3, 4, 23, 3), cardinality=64, width=4, size=224, classes=1000, imagenet=True, grouped=grouped, batch=batch,
        seed=seed,
    )  # fmt: skip


def _branches(graph: OnnxGraph, name: str, source: str, shape: tuple[int, int, int], stride: int, grouped: bool) -> str:
    """1x1 and 3x3 convolutions of all branches; their results side by side."""
    in_channels, cardinality, width = shape
    total = cardinality * width
    reduce, reduce_bias = graph.he((total, in_channels, 1, 1), in_channels), graph.small(total)
    window, window_bias = graph.he((total, width, 3, 3), width * 9), graph.small(total)
    if grouped:
        reduced = graph.conv_of(f"{name}_in", source, reduce, reduce_bias)
        return graph.conv_of(f"{name}_mid", reduced, window, window_bias, stride=stride, groups=cardinality)
    made = []
    for c in range(cardinality):
        part = slice(c * width, (c + 1) * width)
        reduced = graph.conv_of(f"{name}_in{c}", source, reduce[part], reduce_bias[part])
        made.append(graph.conv_of(f"{name}_mid{c}", reduced, window[part], window_bias[part], stride=stride))
    return graph.node("Concat", made, f"{name}_mid", axis=1)


def _shortcut(
    graph: OnnxGraph, name: str, source: str, in_channels: int, out_channels: int, stride: int, project: bool
) -> str:
    if stride == 1 and in_channels == out_channels:
        return source
    if project:
        return graph.conv(f"{name}_side", source, (in_channels, out_channels, 1), stride=stride, relu=False)
    if stride > 1:
        source = graph.pool("AveragePool", f"{name}_pool", source, stride, stride=stride)
    padding = graph.weight(f"{name}_padding", np.array([0, 0, 0, 0, 0, out_channels - in_channels, 0, 0], np.int64))
    return graph.node("Pad", [source, padding], f"{name}_side")
