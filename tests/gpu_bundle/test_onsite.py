"""Plans, timing and reports, without a driver."""

import dataclasses
import itertools
import json
from array import array

import numpy as np
import pytest

from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.errors import ModelError
from tvm_rammer.gpu_bundle.onsite import check
from tvm_rammer.gpu_bundle.onsite.edges import dependences
from tvm_rammer.gpu_bundle.onsite.plan import (
    Plan,
    PlanBuffer,
    PlanLaunch,
    View,
    check_plan,
    plan_from_json,
    plan_to_json,
)
from tvm_rammer.gpu_bundle.onsite.report import Findings
from tvm_rammer.gpu_bundle.onsite.times.measure import Samples, measure

from . import mini


def test_a_plan_survives_json():
    plan = mini.plan("k", cooperative=True, launches=2)
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": (0, 1, 1)}, "cannot launch a grid"),
        ({"block": (64, 32, 1)}, "cannot launch a grid"),
        ({"arguments": (View(2, 0, 4),)}, "there is no buffer 2"),
        ({"arguments": (View(0, 256, 4),)}, "outside of its buffer of 256 bytes"),
        ({"arguments": (View(0, -4, 4),)}, "outside of its buffer"),
    ],
)
def test_a_plan_that_would_break_things_is_refused(change, message):
    plan = mini.plan("k")
    broken = dataclasses.replace(plan, launches=(dataclasses.replace(plan.launches[0], **change),))
    with pytest.raises(ModelError, match=message):
        check_plan(broken)


def test_a_buffer_has_a_file_or_is_memory():
    plan = mini.plan("k", source="")
    with pytest.raises(ModelError, match="input buffer 'x' has file ''"):
        check_plan(plan)


def launches_of(*accesses):
    """A plan of 64 bytes; each launch as (reads, writes), both as ranges of bytes."""
    buffers = (PlanBuffer("memory", 64, "memory"), PlanBuffer("other", 64, "memory"))

    def launch(reads, writes):
        views = [View(0, first, last - first) for first, last in (*reads, *writes)]
        flags = (False,) * len(reads) + (True,) * len(writes)
        return PlanLaunch("k", (1, 1, 1), (32, 1, 1), 0, False, tuple(views), flags)

    return Plan("p", buffers, tuple(launch(*access) for access in accesses), (), {})


def test_launches_depend_on_what_they_share():
    write, left, right = [(0, 32)], [(0, 16)], [(16, 32)]
    plan = launches_of(([], write), (left, [(32, 40)]), (right, [(40, 48)]), ([(32, 48)], [(48, 52)]), ([], left))
    # Two branches side by side, a join, and memory that is used again when its reader has ended.
    assert dependences(plan) == [[], [0], [0], [1, 2], [1]]


def test_what_follows_from_other_edges_is_no_edge():
    cell = [(0, 4)]
    assert dependences(launches_of(([], cell), (cell, cell), (cell, cell), (cell, []))) == [[], [0], [1], [2]]


def test_where_nothing_is_known_of_a_launch_it_may_write_everything():
    plan = launches_of(([(0, 4)], []), ([(0, 4)], []))
    assert dependences(plan) == [[], []]
    unknown = tuple(dataclasses.replace(launch, writes=()) for launch in plan.launches)
    assert dependences(dataclasses.replace(plan, launches=unknown)) == [[], [0]]
    with pytest.raises(ModelError, match="2 of 1 arguments are said to be written"):
        check_plan(dataclasses.replace(plan, launches=(dataclasses.replace(plan.launches[0], writes=(True, True)),)))


def test_relative_error():
    rng = np.random.default_rng(0)
    for got, want in ([rng.standard_normal(9), rng.standard_normal(9)], [np.zeros(3), np.zeros(3)], [np.ones(2)] * 2):
        assert check.finite_relative_error(got, want) == pytest.approx(relative_error(got, want))
    assert check.finite_relative_error([1.0, 2.0], [1.0, 4.0]) == 0.5
    assert check.finite_relative_error([1.0], [1.0, 2.0]) == float("inf")
    assert check.finite_relative_error([float("nan")], [1.0]) == float("inf")


def test_different_runs_are_counted():
    runs = iter([[array("f", [value])] for value in (1, 1, 2, 1)])
    assert check.count_different(lambda: next(runs), [array("f", [1])], 4) == 1


class Fake:
    """Takes a fixed time a run, and writes down whose turn it was."""

    def __init__(self, name, each, log):
        self.name, self.each, self.log = name, each, log

    def batch_us(self, runs):
        self.log.append((self.name, runs))
        return self.each * runs

    def latencies_us(self, runs):
        return [self.each + 10.0] * runs


def test_contenders_take_turns():
    log = []
    contenders = {name: Fake(name, each, log) for name, each in (("a", 40.0), ("b", 4000.0))}
    rounds = list(measure(contenders, 1000.0, 3, clock=lambda: 0.0))
    assert [number for number, _ in rounds] == [1, 2, 3]
    turns = log[log.index(("b", 10)) + 1 :]
    assert turns == [("a", 100), ("b", 3), ("b", 3), ("a", 100), ("a", 100), ("b", 3)]
    summary = rounds[-1][1]["a"].summary()
    assert summary["back_to_back_us"] == 40.0
    assert summary["waited_us"] == 50.0
    assert summary["batches"] == 3


def test_timing_ends_in_time():
    clock = itertools.count(0.0, 10.0)
    rounds = list(measure({"a": Fake("a", 1.0, [])}, 25.0, 1000, clock=lambda: next(clock)))
    assert len(rounds) == 3


def test_report_of_fake_measurements(tmp_path):
    findings = Findings({"command": "python3 gpu_bench", "clocks": {"before": "1980 MHz"}})
    findings.start("lstm", "Cells.")
    uses = {"registers": 40, "threads": 256, "static_shared_bytes": 0, "dynamic_shared_bytes": 1024, "local_bytes": 0}
    samples = {"rammer": Samples([50.0, 52.0, 51.0], [60.0]), "stock": Samples([306.0], [400.0])}
    checked = {"max_rel_err": 1e-6, "different_runs": 0, "of_runs": 20, "status": "ok"}
    facts = {"launches": 1, "kernels": 1, "blocks": 132, "largest": {**uses, "resident_blocks": 6}}
    findings.add("lstm", {"event": "device", "name": "Fake", "multiprocessors": 132, "cuda_driver": "13.0"})
    findings.add("lstm", {"event": "begin", "contender": "rammer"})
    findings.add("lstm", {"event": "loaded", "variant": "rammer", **facts})
    for contender in ("rammer", "stock", "stock+graph"):
        findings.add("lstm", {"event": "checked", "contender": contender, **checked})
    results = {name: s.summary() for name, s in samples.items()}
    findings.add("lstm", {"event": "timed", "rounds": 3, "results": results})
    findings.add("lstm", {"event": "checked-again", "contender": "stock", **checked, "status": "wrong"})
    findings.add("lstm", {"event": "failed", "contender": "same-kernels", "error": "no luck"})
    findings.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| persistent kernel | 1 | 51.0 | 50.0 to 52.0 | 60.0 | 1.00 | 1.0e-06 | 20 of 20 |" in text
    assert "| 306.0 | 306.0 to 306.0 | 400.0 | 6.00 | 1.0e-06 | 20 of 20, WRONG after the timing |" in text
    assert "in a CUDA graph | ? | not timed | | |  | 1.0e-06 | 20 of 20 |" in text
    assert "Failed: same-kernels: no luck" in text
    assert "6 resident blocks a multiprocessor" in text
    assert "before: 1980 MHz" in text
    assert json.loads((tmp_path / "results.json").read_text())["models"]["lstm"]["rounds"] == 3
