"""The command, as a user types it: it survives being killed, being run twice at once, and being run again."""

import collections
import json
import pathlib
import random
import subprocess
import sys
import time
from dataclasses import replace

import onnx
import pytest

from tests.tuning.models import CPU, small_model
from tvm_rammer.cli import main
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.tuning.log.reader import RKERNELS, TuningLog, folder_of
from tvm_rammer.tuning.measure import bench as benches
from tvm_rammer.tuning.tasks import tasks_of

FAKE = pathlib.Path(__file__).with_name("fake_tuner.py")


@pytest.fixture
def model(tmp_path):
    onnx.save(small_model(), tmp_path / "small.onnx")
    return str(tmp_path / "small.onnx")


def start_fake(model, logs, trials, seconds=0.0):
    command = [sys.executable, str(FAKE), str(seconds), "tune", model, "--trials", str(trials), "--logs", str(logs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_of(logs):
    path = folder_of(logs, CPU) / RKERNELS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def labels_of(logs):
    """`key label` of each record, as the fake tuner prints it."""
    return [
        " ".join((r["function"], "_".join((r["rule"], *(f"{n}{v}" for n, v in r["choices"].items())))))
        for r in lines_of(logs)
    ]


@pytest.mark.slow
def test_kernels_are_measured_and_a_second_run_has_nothing_to_do(model, tmp_path, capfd, caplog, monkeypatch):
    monkeypatch.setattr(benches, "RUN_S", 120.0)  # beside busy processes
    logs = tmp_path / "logs"
    with caplog.at_level("INFO", logger="tvm_rammer"):
        assert main(["tune", model, "--trials", "12", "--logs", str(logs)]) == 0
    out, _ = capfd.readouterr()
    assert "12 trials of 4 functions, 0 failed; 0 were in the log before" in out
    assert "best predicted" in caplog.text
    records = lines_of(logs)
    assert len(records) == 12
    assert all(r["rtask_us"] > 0 and r["operator_us"] > 0 and len(r["run_us"]) >= 3 for r in records)
    for task in tasks_of([model], CPU):
        measured = TuningLog(logs).measured(task.function)
        assert set(measured) <= set(task.space)
        fast = {tiling: replace(time, rtask_us=1e-3, operator_us=1e-3) for tiling, time in measured.items()}
        assert any(kernel.spec.measured for kernel in choose(task.function, fast))  # their code is still the same
    assert main(["tune", model, "--trials", "12", "--logs", str(logs)]) == 0
    assert "0 trials of 4 functions, 0 failed; 12 were in the log before" in capfd.readouterr().out
    assert lines_of(logs) == records


@pytest.mark.slow
def test_ten_kills_lose_nothing_that_was_finished(model, tmp_path):
    logs, seen = tmp_path / "logs", []
    rng = random.Random(0)
    for _ in range(10):
        tuner = start_fake(model, logs, 1000, seconds=0.02)
        seen += [tuner.stdout.readline().strip() for _ in range(rng.randrange(1, 12))]
        time.sleep(rng.uniform(0, 0.05))
        tuner.kill()
        rest, _ = tuner.communicate(timeout=300)
        seen += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    found = labels_of(logs)
    assert {line.strip() for line in seen} <= set(found)
    assert max(collections.Counter(found).values()) == 1
    assert len(seen) <= len(found) <= len(seen) + 10  # a kill may come between the record and its being told


@pytest.mark.slow
def test_two_tuners_share_the_work(model, tmp_path):
    logs = tmp_path / "logs"
    tuners = [start_fake(model, logs, 60, seconds=0.05) for _ in range(2)]
    outputs = [tuner.communicate(timeout=300) for tuner in tuners]
    assert [tuner.returncode for tuner in tuners] == [0, 0], outputs
    found = labels_of(logs)
    assert max(collections.Counter(found).values()) == 1
    assert len(found) == 60
    assert all(len(out.splitlines()) > 5 for out, _ in outputs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.onnx"], "no such file: nowhere.onnx"),
        ([], "name at least one"),
        (["MODEL", "--trials", "0"], "--trials is 0; give an integer, at least 1"),
        (["MODEL", "--target", "cuda:h200"], "give --export"),
        (["MODEL", "--logs", "MODEL"], "cannot write a tuning log"),
    ],
)
def test_wrong_arguments_are_refused(model, arguments, message, capsys):
    assert main(["tune", *(model if a == "MODEL" else a for a in arguments)]) == 1
    assert message in capsys.readouterr().err
