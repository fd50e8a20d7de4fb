"""Hostile values for the inputs of random graphs."""

import random

import numpy as np
import onnx

from ..case import ModelCase
from .graphs import graph_case


def hostile_case(seed: int) -> ModelCase:
    """A small random graph whose inputs hold NaN, infinities, denormals, extreme integers."""
    case = graph_case(seed ^ 0x5EED, most=random.Random(f"values/{seed}").choice([1, 1, 2, 3, 4]))
    rng = random.Random(f"values/{seed}")
    draw = np.random.default_rng(rng.getrandbits(32))
    feeds = {name: spoil(array, draw, rng.choice([0.1, 0.3, 1.0])) for name, array in case.feeds.items()}
    model = onnx.load_from_string(case.data)
    return ModelCase("values", seed, model.SerializeToString(), feeds)


def extremes(dtype: np.dtype) -> np.ndarray:
    """Values at the ends of a type, and those that code forgets."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        near = [ends.min, ends.min + 1, -1, 0, 1, ends.max - 1, ends.max, 2**31 - 1, 2**31, -(2**31), 255, 127, 7]
        return np.array([v for v in near if ends.min <= v <= ends.max], dtype)
    ends = np.finfo(dtype)
    small = [ends.tiny, -ends.tiny, ends.smallest_subnormal, -ends.smallest_subnormal, ends.eps]
    large = [ends.max, ends.min, np.inf, -np.inf, np.nan]
    usual = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        1e4,
        -1e4,
        88.0,
        -88.0,
        104.0,
        -104.0,
        2.0**24,
        2.0**31,
        -(2.0**31),
        2.0**63,
    ]
    with np.errstate(over="ignore"):
        return np.array([*small, *large, *usual]).astype(dtype)


def spoil(array: np.ndarray, draw: np.random.Generator, share: float) -> np.ndarray:
    """Put extreme values into a share of the elements, mostly of one kind at a time."""
    pool = extremes(array.dtype)
    pool = draw.choice(pool, int(draw.integers(1, 4)))
    return np.where(draw.random(array.shape) < share, draw.choice(pool, array.shape), array).astype(array.dtype)
