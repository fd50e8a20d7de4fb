"""RotaryEmbedding of ONNX Runtime's, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.errors import ModelError, UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, random, tensor, value
from .test_operators import contrib, microsoft

BATCH, POSITIONS, HEADS, SIZE = 2, 5, 3, 16


def rotary(places, *, heads_first=False, pairs=SIZE // 2, dtype="float32", **how):
    """A node, and what it is given."""
    shape = [BATCH, HEADS, POSITIONS, SIZE] if heads_first else [BATCH, POSITIONS, HEADS * SIZE]
    places, kind = np.array(places), TensorProto.FLOAT if dtype == "float32" else TensorProto.FLOAT16
    constants = [tensor(name, random(20, pairs, seed=n).astype(dtype)) for n, name in enumerate(["cos", "sin"])]
    proto = contrib(
        [microsoft("RotaryEmbedding", ["x", "places", "cos", "sin"], ["y"], **how)],
        [value("x", shape, kind), value("places", places.shape, TensorProto.INT64)],
        [value("y", shape, kind)],
        constants,
    )
    return proto, {"x": random(*shape, seed=4).astype(dtype), "places": places}


EACH = np.arange(BATCH * POSITIONS).reshape(BATCH, POSITIONS)


@pytest.mark.parametrize("places", [[3], EACH])
@pytest.mark.parametrize("heads_first", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("how", [{}, {"interleaved": 1}, {"pairs": 4, "num_heads": HEADS, "rotary_embedding_dim": 8}])
def test_positions_as_angles(how, dtype, heads_first, places, run):
    proto, feeds = rotary(places, heads_first=heads_first, dtype=dtype, **how)
    got, (expected,) = run(load_model(proto), *feeds.values()), by_onnxruntime(proto, **feeds)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 if dtype == "float32" else 1e-2)


def test_a_scale_is_refused_that_onnx_runtime_does_not_heed():
    with pytest.raises(UnsupportedOperatorError, match="has a scale, which ONNX Runtime does not heed"):
        load_model(rotary([3], scale=0.5)[0])


def test_positions_of_another_shape_are_refused():
    with pytest.raises(ModelError, match=r"positions of the shape \[2, 3\] for \[2, 5, 48\]"):
        load_model(rotary(EACH[:, :3])[0])


def test_more_pairs_than_a_head_has_are_refused():
    with pytest.raises(ModelError, match="12 pairs to turn in heads of 16 elements"):
        load_model(rotary([3], heads_first=True, pairs=12)[0])
