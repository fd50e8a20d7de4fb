"""ONNX's reference evaluator as the judge: it knows what ONNX Runtime lacks."""

import numpy as np
from onnx.reference import ReferenceEvaluator

from tvm_rammer.relay_passes import load_model


def by_reference(run, proto, shapes=None, **inputs):
    """Load and run a model; compare shapes, types and values with the reference's. Returns the module."""
    mod = load_model(proto, shapes)
    got = run(mod, *inputs.values())
    expected = ReferenceEvaluator(proto).run(None, inputs)
    for left, right in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)
    return mod
