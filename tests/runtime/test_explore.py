"""The first calls try several plans; results stay right, and the fastest plan stays."""

import threading

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import TuningLogError
from tvm_rammer.runtime.explore import MIN_CALLS, Alternative, Exploration
from tvm_rammer.tuning.log.lines import TuningLogWarning
from tvm_rammer.tuning.log.reader import folder_name

op = relax.op


def alternatives(*names):
    return [Alternative(name, Compilation(host_cpu()), None) for name in names]


def spend(exploration, times, calls):
    return [exploration.call(lambda a: (a.label, times[a.label][min(len(a.times_us), 9)])) for _ in range(calls)]


def test_calls_take_turns_and_the_fastest_stays():
    told = []
    exploration = Exploration(alternatives("a", "b"), 8, told.append)
    times = {"a": [5.0] * 10, "b": [90.0, *[3.0] * 9]}
    assert exploration.best.label == "a"
    assert spend(exploration, times, 8) == ["a", "b"] * 4
    assert told == [exploration] and exploration.best.label == "b"  # the first call counts for nothing
    assert spend(exploration, times, 3) == ["b"] * 3
    assert [len(a.times_us) for a in exploration.alternatives] == [4, 4]


def test_a_log_that_cannot_be_written_costs_no_result():
    def full(exploration):
        raise TuningLogError("the disk is full")

    exploration = Exploration(alternatives("a", "b"), 2 * MIN_CALLS, full)
    times = {"a": [5.0] * 10, "b": [3.0] * 10}
    with pytest.warns(TuningLogWarning, match="not kept: the disk is full"):
        assert spend(exploration, times, 2 * MIN_CALLS) == ["a", "b"] * MIN_CALLS
    assert spend(exploration, times, 1) == ["b"]


def test_threads_that_explore_share_the_calls():
    told = []
    exploration = Exploration(alternatives("a", "b"), 40, told.append)
    threads = [
        threading.Thread(target=lambda: [exploration.call(lambda a: (a.label, 1.0)) for _ in range(20)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [exploration] and exploration.calls_left == 0
    assert all(len(a.times_us) >= 16 for a in exploration.alternatives)


@pytest.mark.parametrize(("calls", "tried"), [(0, 1), (1, 1), (2 * MIN_CALLS, 2), (100, 3)])
def test_only_as_many_are_tried_as_can_be_judged(calls, tried):
    exploration = Exploration(alternatives("a", "b", "c"), calls)
    labels = spend(exploration, {n: [1.0] * 10 for n in "abc"}, calls + 1)
    assert set(labels) == set("abc"[:tried])


@pytest.mark.slow
def test_results_are_right_throughout(monkeypatch):
    monkeypatch.setattr("tvm_rammer.runtime.alternatives.TIE_FACTOR", 10.0)
    mod = relax_module(
        [(16, 64), (64, 64), (64, 64)],
        lambda x, v, w: op.add(op.nn.softmax(op.matmul(x, v)), op.tanh(op.matmul(x, w))),
    )
    calls = 3 * MIN_CALLS + 2
    module = tvm_rammer.compile(mod, explore=calls)
    plain = tvm_rammer.compile(mod)
    rng = np.random.default_rng(0)
    assert len(module.exploration.alternatives) > 1
    plans = [a.compilation.programs for a in module.exploration.alternatives]
    assert all(a != b for n, a in enumerate(plans) for b in plans[:n])
    for _ in range(calls + 2):
        x, v, w = (rng.standard_normal(s).astype("float32") for s in ((16, 64), (64, 64), (64, 64)))
        np.testing.assert_allclose(module(x, v, w), plain(x, v, w), rtol=1e-4, atol=1e-5)
    assert module.exploration.calls_left == 0
    assert sum(len(a.times_us) for a in module.exploration.alternatives) == calls
    assert module.compilation is module.exploration.best.compilation


def test_what_was_learnt_is_logged_and_used(monkeypatch, tmp_path):
    monkeypatch.setattr("tvm_rammer.runtime.alternatives.TIE_FACTOR", 10.0)
    mod = relax_module([(16, 64), (64, 64)], lambda x, w: op.tanh(op.matmul(op.nn.softmax(x), w)))
    (tmp_path / folder_name(host_cpu())).mkdir()
    (tmp_path / folder_name(host_cpu()) / "rkernels.jsonl").touch()
    first = tvm_rammer.compile(mod, explore=2 * MIN_CALLS, tuning_logs=tmp_path)
    assert len(first.exploration.alternatives) == 2
    x, w = (np.ones(s, "float32") for s in ((16, 64), (64, 64)))
    for _ in range(2 * MIN_CALLS):
        first(x, w)
    again = tvm_rammer.compile(mod, explore=2 * MIN_CALLS, tuning_logs=tmp_path)
    (only,) = again.exploration.alternatives
    assert only.label == first.exploration.best.label and again.exploration.calls_left == 0
    other = relax_module([(16, 32), (32, 64)], lambda x, w: op.tanh(op.matmul(op.nn.softmax(x), w)))
    assert tvm_rammer.compile(other, explore=2 * MIN_CALLS, tuning_logs=tmp_path).exploration.calls_left
