"""Operators that ONNX Runtime had before ONNX, against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

from tvm_rammer.errors import UnsupportedOperatorError
from tvm_rammer.relay_passes import load_model

from ....models import by_onnxruntime, model, random, tensor, value, with_contrib
from .test_operators import microsoft

FLOATS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}


def check(run, kind, arrays, constants=(), *, opset=17, tolerance=1e-5, **how):
    """One node, whose constants are those after its inputs."""
    names = [f"x{n}" for n in range(len(arrays))]
    fixed = [tensor(f"c{n}", array) for n, array in enumerate(constants)]
    given = [value(n, a.shape, FLOATS.get(str(a.dtype), TensorProto.INT64)) for n, a in zip(names, arrays, strict=True)]
    nodes = [microsoft(kind, [*names, *(c.name for c in fixed)], ["y"], **how)]
    results = [value("y", None, FLOATS[str(arrays[0].dtype)])]
    proto = with_contrib(model(nodes, given, results, fixed, opset=opset))
    got = run(load_model(proto), *arrays)
    (expected,) = by_onnxruntime(proto, **dict(zip(names, arrays, strict=True)))
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("opset", [11, 17, 20])
@pytest.mark.parametrize(
    "how",
    [
        {}, {"mode": "bilinear", "align_corners": 1}, {"mode": "nearest", "padding_mode": "reflection"},
        {"mode": "bicubic", "padding_mode": "border"},
    ],
)  # fmt: skip
def test_samples_of_an_image(how, opset, run):
    check(run, "GridSample", [random(2, 3, 5, 6), 0.7 * random(2, 4, 3, 2, seed=1)], opset=opset, **how)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [None, -1, 1, 9, -9])
def test_triangles(diagonal, upper, run):
    for opset in (11, 17):
        constants = [] if diagonal is None else [np.int64(diagonal)]
        check(run, "Trilu", [random(2, 3, 4)], constants, opset=opset, upper=upper)


@pytest.mark.parametrize("axis", [0, 1, -1, 2])
def test_one_more_axis(axis, run):
    check(run, "ExpandDims", [random(2, 3)], [np.int32(axis)])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads(mode, run):
    check(run, "Pad", [random(2, 6, 4)], [np.array([0, 1, 2, 0, 3, -1]), np.float32(0.5)], mode=mode)


def test_elements_by_their_places(run):
    check(run, "GatherND", [random(3, 4, 2), np.array([[[0, 1]], [[2, 3]]])])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("lead", [(), (2, 3)])
def test_inverses_of_small_matrices(lead, size, dtype, run):
    matrices = (random(*lead, size, size) + 3 * np.eye(size)).astype(dtype)
    check(run, "Inverse", [matrices], tolerance={"float16": 5e-3, "float32": 1e-5, "float64": 1e-12}[dtype])


def test_inverses_of_larger_matrices_are_refused():
    proto = with_contrib(model([microsoft("Inverse", ["x"], ["y"])], [value("x", [5, 5])], ["y"]))
    with pytest.raises(UnsupportedOperatorError, match="is of 5 x 5 matrices; up to 4 x 4 can be compiled"):
        load_model(proto)
