"""A model that is run in another way is judged by its results in the plain one."""

import itertools

import numpy as np
import onnx
import pytest

from ..case import ModelCase
from ..generate.sequences import sequence_case
from ..models import model_of
from . import ways
from .onnx_judges import judge


@pytest.mark.parametrize("way", [*ways.EXACT, *ways.NEAR])
def test_each_way_is_gone_and_judged(way, monkeypatch):
    case = ModelCase("ways", 5, model_of("Exp").SerializeToString(), {"x": np.float32([0, 1, 2])})
    verdict = judge(onnx.load_from_string(case.data), case.feeds)
    monkeypatch.setattr(ways, "way_of", lambda rng, judged: way)
    assert ways.judge_way(5, case.data, case.feeds, verdict) == ""
    table = ways.EXACT if way in ways.EXACT else ways.NEAR
    run = table[way]
    monkeypatch.setitem(table, way, lambda task: [[a + 1 for a in got] for got in run(task)])
    assert ways.judge_way(5, case.data, case.feeds, verdict).startswith(f"{way}: ")


def test_each_length_is_judged(monkeypatch):
    case = next(case for case in map(sequence_case, range(50)) if len(case.feeds) == 1)
    assert ways.judge_lengths(case.seed, case.data, case.feeds) == ""
    real, seen = ways.results_of, itertools.count()
    monkeypatch.setattr(ways, "results_of", lambda *run: [a + next(seen) for a in real(*run)])
    assert "steps" in ways.judge_lengths(case.seed, case.data, case.feeds)
