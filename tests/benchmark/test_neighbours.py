"""Engines beside busy processes: results are checked first, and processes do not stay behind."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest

from tvm_rammer.benchmark.neighbours import Latency, _check, beside_neighbours
from tvm_rammer.benchmark.quota import joining, quota_group
from tvm_rammer.errors import ModelError, ToolError
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.slow
def test_an_engine_is_measured_beside_each_number_of_neighbours(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(onnx_lstm(1, 3, 8), path)
    found = beside_neighbours(path, ["rammer", "onnxruntime"], [0, 1], threads=1, seconds=0.02, rounds=1)
    assert list(found) == [0, 1]
    for latencies in found.values():
        assert list(latencies) == ["rammer", "onnxruntime"]
        assert all(0 < x.p50 <= x.p99 and x.mean > 0 for x in latencies.values())


def test_a_model_that_an_engine_cannot_run_is_said(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match="an engine could not run the model"):
        beside_neighbours(tmp_path / "model.onnx", ["rammer"], [0], threads=1, seconds=0.01, rounds=1)


def test_results_that_differ_are_not_timed():
    class Fake:
        def __init__(self, value):
            self._value = value

        def results(self):
            return [np.array([1.0, self._value])]

    _check({"a": Fake(2.0), "b": Fake(2.0)})
    with pytest.raises(ModelError, match="nothing was timed"):
        _check({"a": Fake(2.0), "b": Fake(2.1)})


def test_busy_processes_end_with_the_one_that_has_them():
    """Also where it is killed: its end closes the pipe, and so does theirs."""
    code = (
        "import os, signal\n"
        "from tvm_rammer.benchmark.neighbours import busy_processes\n"
        "with busy_processes(2): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == -9


def test_percentiles_are_interpolated():
    assert Latency.of([1.0, 2.0, 9.0]) == Latency(2.0, 4.0, pytest.approx(8.86))


@pytest.mark.parametrize(
    ("parent", "present", "written"),
    [
        (".", ["cpu.max"], {"cpu.max": "150000 100000"}),
        ("cpu", [], {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"}),
    ],
)
def test_a_quota_in_both_versions_of_control_groups(parent, present, written, tmp_path, monkeypatch):
    (tmp_path / parent).mkdir(exist_ok=True)
    folder = tmp_path / parent / f"tvm_rammer_{os.getpid()}"
    mkdir = type(folder).mkdir

    def make(path, *args, **how):
        mkdir(path, *args, **how)
        for name in present:
            (path / name).touch()

    monkeypatch.setattr(type(folder), "mkdir", make)
    with quota_group(1.5, tmp_path) as group:
        assert group == folder / "cgroup.procs"
        assert {p.name: p.read_text() for p in folder.iterdir()} == written
        subprocess.run(joining(["true"], group), check=True)
        assert int(group.read_text()) != os.getpid()


def test_where_there_can_be_no_control_group(tmp_path):
    with pytest.raises(ToolError, match="run without a quota"), quota_group(1, tmp_path / "nowhere"):
        pass
