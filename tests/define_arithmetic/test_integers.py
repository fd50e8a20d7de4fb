"""Quotients, remainders and shifts of integers: by zero, and beyond the width."""

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.hostile import model, results

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def pairs(dtype):
    """All pairs of extreme values and some others."""
    limits = np.iinfo(dtype)
    values = {limits.min, limits.max, 0, 1, 2, 7, 100} | ({-1, -2, -7, limits.min + 1} if limits.min else set())
    grid = np.array([(a, b) for a in values for b in values], dtype)
    return {"x": grid[:, 0].copy(), "y": grid[:, 1].copy()}


def quotient(a, b, least):
    """Cut off towards 0."""
    if b == 0 or (a, b) == (least, -1):
        return a if b else 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_and_remainders_of_all_integers(dtype):
    arrays = pairs(dtype)
    nodes = [("Div", ["x", "y"], {}), ("Mod", ["x", "y"], {}), ("Mod", ["x", "y"], {"fmod": 1})]
    divided, floored, cut = results(model(nodes, arrays), arrays)
    numbers = list(zip(arrays["x"].tolist(), arrays["y"].tolist(), strict=True))
    least = int(np.iinfo(dtype).min)
    np.testing.assert_array_equal(divided, np.array([quotient(a, b, least) for a, b in numbers], dtype))
    np.testing.assert_array_equal(floored, np.array([a % b if b else 0 for a, b in numbers], dtype))
    rests = [a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)) if b else 0 for a, b in numbers]
    np.testing.assert_array_equal(cut, np.array(rests, dtype))


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.startswith("u")])
def test_shifts_beyond_the_width(dtype):
    limits = np.iinfo(dtype)
    bits = [0, 1, limits.bits - 1, limits.bits, limits.bits + 1, limits.max]
    grid = np.array([(a, b) for a in (1, limits.max, limits.max // 2 + 1) for b in bits], dtype)
    arrays = {"x": grid[:, 0].copy(), "y": grid[:, 1].copy()}
    nodes = [("BitShift", ["x", "y"], {"direction": direction}) for direction in ("LEFT", "RIGHT")]
    nodes.append(("BitShift", ["x", "far"], {"direction": "LEFT"}))
    left, right, far = results(model(nodes, arrays, {"far": np.array(limits.bits, dtype)}), arrays)
    near = [(a, b) if b < limits.bits else (0, 0) for a, b in grid.tolist()]
    np.testing.assert_array_equal(left, np.array([(a << b) & limits.max for a, b in near], dtype))
    np.testing.assert_array_equal(right, np.array([a >> b for a, b in near], dtype))
    assert not far.any()


def test_signs_fill_what_is_shifted_out():
    x, distance = np.array([-8, -8, 8, -1, 5], "int32"), np.array([1, 40, 40, -3, -1], "int32")
    module = relax_module([(5,), (5,)], relax.op.right_shift, dtype="int32")
    np.testing.assert_array_equal(tvm_rammer.compile(module)(x, distance), [-4, -1, 0, -1, 0])
