"""Time to the first answer: every way answers, and answers that differ are not reported."""

import importlib.util

import numpy as np
import pytest

from tvm_rammer.benchmark.peers import PACKAGES
from tvm_rammer.benchmark.startup import WAYS, _check, first_answers
from tvm_rammer.errors import ModelError
from tvm_rammer.zoo.onnx_lstm import onnx_lstm


def test_every_way_answers():
    found = first_answers(onnx_lstm(1, 3, 8), threads=1, runs=1)
    there = [w.label for w in WAYS if w.engine not in PACKAGES or importlib.util.find_spec(w.engine)]
    assert list(found) == there
    assert all(seconds > 0 for seconds in found.values())


def test_results_that_differ_are_an_error():
    _check(WAYS[0], [np.ones(3)], [np.ones(3)])
    with pytest.raises(ModelError, match="differ by 5"):
        _check(WAYS[0], [np.ones(3)], [np.full(3, 2.0)])
