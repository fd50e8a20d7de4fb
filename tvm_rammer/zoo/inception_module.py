"""One Inception module: four branches that depend on nothing but the input, and a concatenation."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8
WIDTHS_3A = (64, 96, 128, 16, 32, 32)


def inception_module(
    seed: int = 0, *, channels: int = 192, size: int = 28, widths: Sequence[int] = WIDTHS_3A, batch: int = 1
) -> onnx.ModelProto:
    """Build an Inception module, by default "3a" of GoogLeNet (Szegedy et al., CVPR 2015, table 1).

    Parameters
    ----------
    seed : int
        Of the weights: He's normals, and small biases.
    channels, size : int
        Of the input `x`, float32 [batch, channels, size, size].
    widths : sequence of int
        Channels of the 1x1 branch; of the 3x3 branch, reduced and in the end; of the 5x5 branch, likewise; and of
        the pooled branch.
    batch : int

    Returns
    -------
    onnx.ModelProto
        Output `y`, float32 [batch, the branches' channels, size, size].
    """
    one, three_in, three, five_in, five, pooled = widths
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def conv(name: str, source: str, inputs: int, outputs: int, kernel: int) -> str:
        scale = np.sqrt(2 / (inputs * kernel * kernel))
        filters = scale * rng.standard_normal((outputs, inputs, kernel, kernel))
        bias = 0.1 * rng.standard_normal(outputs)
        weights.append(numpy_helper.from_array(filters.astype(np.float32), f"{name}_w"))
        weights.append(numpy_helper.from_array(bias.astype(np.float32), f"{name}_b"))
        pads = [kernel // 2] * 4
        nodes.append(helper.make_node("Conv", [source, f"{name}_w", f"{name}_b"], [f"{name}_sum"], pads=pads))
        nodes.append(helper.make_node("Relu", [f"{name}_sum"], [name]))
        return name

    nodes.append(helper.make_node("MaxPool", ["x"], ["pool"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    branches = [
        conv("one", "x", channels, one, 1),
        conv("three", conv("three_in", "x", channels, three_in, 1), three_in, three, 3),
        conv("five", conv("five_in", "x", channels, five_in, 1), five_in, five, 5),
        conv("pooled", "pool", channels, pooled, 1),
    ]
    nodes.append(helper.make_node("Concat", branches, ["y"], axis=1))
    total = one + three + five + pooled
    graph = helper.make_graph(
        nodes,
        "inception_module",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, channels, size, size))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (batch, total, size, size))],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
