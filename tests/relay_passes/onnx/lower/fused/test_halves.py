"""Fused operators of bfloat16, which ONNX Runtime has on a GPU only, against the same ones of float32."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer

from ....models import model, node, random, value, with_contrib

ROWS, ROW, HEADS = (2, 3, 8), (8,), {"num_heads": 2}

OPERATORS = {
    "FusedMatMul": ([(3, 8), (8, 4)], {"alpha": 0.5}),
    "SimplifiedLayerNormalization": ([ROWS, ROW], {}),
    "SkipLayerNormalization": ([ROWS, ROWS, ROW, ROW, ROW], {}),
    "SkipSimplifiedLayerNormalization": ([ROWS, ROWS, ROW], {}),
    "Attention": ([(1, 4, 8), (8, 24), (24,)], HEADS | {"unidirectional": 1}),
    "MultiHeadAttention": ([(1, 4, 8)] * 3, HEADS),
    "GroupNorm": ([(1, 5, 5, 4), (4,), (4,)], {"groups": 2, "activation": 1}),
    "BiasSplitGelu": ([(1, 4, 8), ROW], {}),
    "Inverse": ([(3, 3)], {}),
    "LSTM": ([(5, 2, 3), (1, 16, 3), (1, 16, 4), (1, 32)], {"hidden_size": 4, "clip": 0.5}),
    "PRelu": ([(3, 4), (4,)], {}),
    "Clip": ([(3, 4), (), ()], {}),
}


@pytest.mark.parametrize("kind", OPERATORS)
def test_operators_of_bfloat16(kind):
    shapes, attributes = OPERATORS[kind]
    feeds = {f"x{i}": random(*shape, seed=i).astype(ml_dtypes.bfloat16) for i, shape in enumerate(shapes)}
    domain = "" if kind in ("SimplifiedLayerNormalization", "LSTM", "PRelu", "Clip") else "com.microsoft"
    nodes = [node(kind, list(feeds), ["y"], domain=domain, **attributes)]

    def computed(elem, dtype):
        given = [value(name, array.shape, elem) for name, array in feeds.items()]
        proto = with_contrib(model(nodes, given, [value("y", None, elem)], opset=22, ir=10))
        return tvm_rammer.compile(proto)(**{name: array.astype(dtype) for name, array in feeds.items()})

    got = computed(TensorProto.BFLOAT16, ml_dtypes.bfloat16)
    assert got.dtype == ml_dtypes.bfloat16
    want = computed(TensorProto.FLOAT, "float32")
    np.testing.assert_allclose(got.astype("float32"), want, rtol=2e-2, atol=2e-2)
