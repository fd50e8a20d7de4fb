"""AlexNet with one tower (Krizhevsky, 2014): a chain of large operators, in which there is little to co-schedule."""

import onnx

from .onnx_tools.graph import OnnxGraph


def alexnet(
    *, size: int = 227, filters: int = 64, hidden: int = 4096, classes: int = 1000, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """Build the AlexNet of Rammer's evaluation, table 2, where it is the negative control.

    Parameters
    ----------
    size : int
        Of the input `x`, float32 [batch, 3, size, size]; at least 67.
    filters : int
        Of the first convolution; the others have 3, 6, 6 and 4 times as many.
    hidden : int
        Of the first two dense layers.
    classes, batch : int
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Output `y`, float32 [batch, classes], without a softmax.
    """
    graph = OnnxGraph(seed)
    at = graph.conv("conv1", "x", (3, filters, 11), stride=4, pad=0)
    at = graph.pool("MaxPool", "pool1", at, 3, stride=2)
    at = graph.conv("conv2", at, (filters, 3 * filters, 5))
    at = graph.pool("MaxPool", "pool2", at, 3, stride=2)
    at = graph.conv("conv3", at, (3 * filters, 6 * filters, 3))
    at = graph.conv("conv4", at, (6 * filters, 6 * filters, 3))
    at = graph.conv("conv5", at, (6 * filters, 4 * filters, 3))
    at = graph.pool("MaxPool", "pool5", at, 3, stride=2)
    side = (size - 11) // 4 + 1
    for _ in range(3):
        side = (side - 3) // 2 + 1
    at = graph.node("Flatten", [at], "flat")
    at = graph.node("Relu", [graph.dense("fc6_sum", at, 4 * filters * side * side, hidden)], "fc6")
    at = graph.node("Relu", [graph.dense("fc7_sum", at, hidden, hidden)], "fc7")
    graph.dense("y", at, hidden, classes)
    return graph.model("alexnet", {"x": (batch, 3, size, size)}, {"y": (batch, classes)})
