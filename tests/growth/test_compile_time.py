"""Time and memory of compiling grow no faster than n log n; `scripts/bench compiling` measures more, and longer."""

import math

import pytest

from .measure import compiled

TIMES = 4
"""How much longer the longer model is: n log n then takes some 5 times as long, and n^2 16 times."""

GROWTH, MEGABYTES = 9.0, 15.0
"""Seconds of the longer model over those of the shorter one, at most; memory that may come and go."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "length"),
    [
        ("Relu", 500),
        ("Tanh", 500),
        ("LeakyRelu", 500),
        ("Mul x x", 500),
        ("Where x > c", 250),
        ("LSTM unrolled", 80),
        ("Loop unrolled", 150),
        ("Concat", 80),
    ],
)
def test_grows_no_faster_than_n_log_n(kind, length):
    short, long = compiled(kind, (length, TIMES * length))
    assert short.error <= 1e-5 and long.error <= 1e-5
    assert long.seconds <= GROWTH * short.seconds
    per_log = TIMES * math.log(TIMES * length) / math.log(length)
    assert long.megabytes <= per_log * short.megabytes + MEGABYTES
