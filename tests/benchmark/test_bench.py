"""A contender that cannot run a model, or finds something else than all others, does not stop the others."""

import time

import numpy as np
import pytest

from tests.hostile import model
from tvm_rammer.benchmark import race as racing
from tvm_rammer.benchmark.bench import bench
from tvm_rammer.errors import ModelError

INPUT = {"x": np.ones((2, 8), "float32")}


class Session:
    """In the place of ONNX Runtime's: it finds zeros."""

    def __init__(self, *_arguments, **_how):
        pass

    def run(self, _names, feed):
        return [np.zeros_like(feed["x"])]


class Refusing(Session):
    def run(self, _names, _feed):
        raise RuntimeError("Exception from inside:\n\n  this operator is not known  \n")


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (Session, "results differ from those of the others"),
        (Refusing, "cannot run the model: this operator is not known"),
    ],
)
def test_who_is_left_out(session, reason, monkeypatch):
    monkeypatch.setattr("onnxruntime.InferenceSession", session)
    proto = model([("Exp", ["x"], {})], INPUT)
    found = bench(proto, against=["onnxruntime", "stock"], repeat=1)
    assert set(found["results"]) == {"rammer", "stock"}
    assert reason in found["missing"]["onnxruntime"]


def test_the_tolerance_is_as_wide_as_asked_for(monkeypatch):
    monkeypatch.setattr("onnxruntime.InferenceSession", Session)
    proto = model([("Exp", ["x"], {})], INPUT)
    with pytest.raises(ModelError, match=r"than 0\.5: nothing was timed"):
        bench(proto, against=["onnxruntime"], repeat=1, tolerance=0.5)
    assert bench(proto, against=["onnxruntime"], repeat=1, tolerance=1e40)["results"]["onnxruntime"]


def test_a_contender_that_takes_long_ends_the_race(monkeypatch):
    """After the least number of rounds: stock TVM may take seconds for a run."""
    monkeypatch.setattr(racing, "ENOUGH_S", 0.0)
    runs = dict.fromkeys("ab", 0)

    def contender(name):
        def run(inputs):
            runs[name] += 1
            if name == "b":
                time.sleep(racing.MAX_BLOCK_S)
            return [inputs[0]]

        return run

    samples = racing.race({name: contender(name) for name in runs}, [np.ones(1)], 1000, rounds=2)
    assert 2 <= runs["b"] <= 2 + 2 * racing.RETRIES and len(samples["b"].times) >= 1
