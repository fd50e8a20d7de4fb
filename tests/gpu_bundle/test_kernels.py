"""Kernels of functions that TVM wrote by hand, emulated as a bundle launches them."""

import numpy as np

from tests.emulation.models import Way, emulated_model
from tests.hostile import by_onnxruntime, model


def test_functions_that_take_offsets_beside_tensors():
    """TVM's ScatterND: a bundle's arrays begin at their pointers."""
    x = np.random.default_rng(0).standard_normal((6, 8)).astype("float32")
    constants = {"at": np.array([[4], [0], [5]]), "rows": -x[:3]}
    nodes = [("Relu", ["x"], {}), ("ScatterND", ["y0", "at", "rows"], {}), ("Neg", ["y1"], {})]
    proto = model(nodes, {"x": x}, constants)
    got = emulated_model(proto, Way(units=2)).run({"x": x}, seed=0)
    for found, want in zip(got, by_onnxruntime(proto, {"x": x}), strict=True):
        np.testing.assert_array_equal(found, want)
