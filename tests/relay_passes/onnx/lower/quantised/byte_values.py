"""Arrays of bytes, and how quantised results are compared."""

import numpy as np
from onnx import TensorProto

from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, rng

UINT8, INT8, INT32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32
NUMPY = {UINT8: np.uint8, INT8: np.int8}


def integers(kind, *shape, seed=0):
    info = np.iinfo(NUMPY[kind])
    return rng(seed).integers(info.min, info.max, shape, NUMPY[kind], endpoint=True)


def weights_of(*shape):
    """Weights of 7 bits: ONNX Runtime adds two products in 16 bits on a processor without VNNI, where larger ones
    saturate. Ours are exact, which other tests show."""
    return rng(0).integers(-64, 64, shape, np.int8)


def off_by_one_at_most(run, proto, **inputs):
    """Load and run a model with a quantised result: where a number lies between two, either is right."""
    got = run(load_model(proto), *inputs.values())
    (expected,) = by_onnxruntime(proto, **inputs)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert len(np.unique(expected)) > 3
    apart = np.abs(got.astype(int) - expected.astype(int))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.05
