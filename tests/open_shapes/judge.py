"""Calls of a module of open shapes, compared with ONNX Runtime."""

import numpy as np
import onnxruntime

SMALL = {"height": 16, "filters": 4, "hidden": 8, "letters": 7}


def feed(batch):
    rng = np.random.default_rng(batch)
    return {n: rng.standard_normal((batch, size)).astype("float32") for n, size in (("x", 16), ("b", 32))}


def agrees(module, model, feeds):
    """Compare a module with ONNX Runtime."""
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for got, want in zip(module.run(None, feeds), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
