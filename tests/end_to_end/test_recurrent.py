"""Recurrent layers as ONNX has them, through the whole compiler, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tests.marks import one_in
from tests.relay_passes.models import by_onnxruntime, random, value
from tests.relay_passes.onnx.lower.recurrence.test_recurrent import B, I, layer, stacked
from tvm_rammer.benchmark.race import relative_error


@pytest.mark.parametrize("direction", one_in(2, ["bidirectional", "forward"]))
@pytest.mark.parametrize("policy", one_in(2, ["auto", "wavefront"]))
def test_two_layers_are_one_launch(direction, policy):
    proto, x = stacked(direction, 20), random(20, B, I)
    module = tvm_rammer.compile(proto, policy=policy, loops=False)
    facts = module.report()
    assert facts["rprogram_launches"] == 1 and facts["left_to_stock"] == 0
    for got, want in zip(module(x), by_onnxruntime(proto, x=x), strict=True):
        assert relative_error(got, want) <= 1e-5


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
def test_lengths_that_differ(kind):
    proto = layer(kind, "reverse", ["x", "w", "r", "b", "lengths"], [value("lengths", [B], TensorProto.INT32)])
    module = tvm_rammer.compile(proto)
    for lengths in ([1, 5], [4, 2]):
        inputs = {"x": random(5, B, I), "lengths": np.array(lengths, "int32")}
        for got, want in zip(module(**inputs), by_onnxruntime(proto, **inputs), strict=True):
            assert relative_error(got, want) <= 1e-5
