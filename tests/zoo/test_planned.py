"""Planned for a GPU: rules for CUDA refuse what they cannot make, and others take over."""

import numpy as np
import pytest

from tvm_rammer.ablations.variants import Variants
from tvm_rammer.device import preset
from tvm_rammer.zoo.onnx_tools.graph import OnnxGraph

from .tiny import TINY


def test_a_pool_whose_result_is_padded_and_added_gets_a_kernel():
    """As on the side of a ResNeXt's block for CIFAR."""
    graph = OnnxGraph()
    room = graph.weight("room", np.array([0, 0, 0, 0, 0, 4, 0, 0], np.int64))
    pooled = graph.node("Pad", [graph.pool("AveragePool", "pooled", "x", 2, stride=2), room], "padded")
    graph.node("Add", [pooled, "z"], "y")
    shapes = {"x": (1, 4, 8, 8), "z": (1, 8, 4, 4)}
    variants = Variants(graph.model("side", shapes, {"y": (1, 8, 4, 4)}), preset("cuda:h200"))
    assert not variants.record.stock_calls
    assert all(variants.record.kernels.values())


@pytest.mark.slow
def test_a_tiny_lstm_is_planned():
    variants = Variants(TINY["lstm"](), preset("cuda:h200"))
    assert not variants.record.stock_calls
    assert all(p.makespan_us > 0 for p in variants.plan("wavefront", "auto"))
