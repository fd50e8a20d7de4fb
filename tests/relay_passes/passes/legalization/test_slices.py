"""Slices whose bounds come when the model runs, against NumPy's."""

import numpy as np
import pytest
from onnx import TensorProto

import tvm_rammer
from tests.relay_passes.models import model, node, random, rng, tensor, value
from tvm_rammer.errors import ModelError

LOWEST, HIGHEST = -(2**63), 2**63 - 1
PLACES = [LOWEST, -100, -7, -6, -5, -4, -3, -1, 0, 1, 3, 4, 5, 6, 7, 100, HIGHEST]
STEPS = [LOWEST, -(2**32), -7, -2, -1, 1, 2, 3, 100, 2**62, HIGHEST]
X = random(4, 5, 6)


def sliced(axes, *, steps):
    names = ["begins", "ends", *(["steps"] if steps else [])]
    inputs = [value("x", X.shape), *(value(name, [len(axes)], TensorProto.INT64) for name in names)]
    nodes = [node("Slice", ["x", "begins", "ends", "axes", *names[2:]], ["y"])]
    outputs = [value("y", ["a", "b", "c"])]
    return tvm_rammer.compile(model(nodes, inputs, outputs, [tensor("axes", np.array(axes))]), cache=False)


def starts_before_the_axis(begin, step, extent):
    """ONNX begins there with the first element where it goes backward, NumPy has none."""
    return step < 0 and begin + extent < 0


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("axes", [[0], [2, 0], [0, 1, -1]])
def test_any_bounds(axes, steps):
    module, draw = sliced(axes, steps=steps), rng(len(axes))
    for _ in range(100):
        begins, ends = (draw.choice(PLACES, len(axes)) for _ in range(2))
        by = draw.choice(STEPS, len(axes)) if steps else np.ones(len(axes), int)
        extents = [X.shape[axis] for axis in axes]
        if any(map(starts_before_the_axis, map(int, begins), by, extents)):
            continue
        places = [slice(None)] * X.ndim
        for axis, *bounds in zip(axes, begins, ends, by, strict=True):
            places[axis] = slice(*map(int, bounds))
        got = module(X, begins, ends, *([by] if steps else []))
        np.testing.assert_array_equal(got, X[tuple(places)], err_msg=f"{begins} {ends} {by}")


def test_a_begin_before_the_axis_is_its_first_element_backward():
    one = sliced([0], steps=True)(X, np.array([-100]), np.array([LOWEST]), np.array([-1]))
    np.testing.assert_array_equal(one, X[:1])


def test_a_step_of_nothing_is_refused():
    module = sliced([0, 1], steps=True)
    with pytest.raises(ModelError, match="Slice got a step of 0; mend the data of 'steps'"):
        module(X, np.array([0, 0]), np.array([2, 2]), np.array([1, 0]))
