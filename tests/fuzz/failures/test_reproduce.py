"""Failures become small test files, which stand by themselves."""

import subprocess

import numpy as np
import onnx
import pytest

from tests.forking import python

from ..case import ModelCase, Report
from ..client import ROOT
from ..generate.graphs import graph_case
from ..generate.kernels import kernel_case
from ..generate.scripts import script_case
from ..kinds import KINDS
from ..models import model_of
from .print_model import python_of_model
from .reproduce import write_test


def test_models_are_printed_as_python():
    for seed in range(30):
        assert python_of_model(onnx.load_from_string(graph_case(seed).data)) is not None


def run_file(path):
    return subprocess.run([python(), str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_written_model_runs(tmp_path):
    x = np.float32([-1, 0, 2])
    case = ModelCase("graphs", 7, model_of("Relu").SerializeToString(), {"x": x})
    report = Report("wrong", "value: result 0 at (0,) is 1.0 instead of 0.0")
    good = run_file(write_test(tmp_path / "good", case, report, [np.maximum(x, 0)]))
    assert good.returncode == 0, good.stderr
    bad = run_file(write_test(tmp_path / "bad", case, report, [x]))
    assert bad.returncode == 1 and "Mismatch" in bad.stderr


@pytest.mark.parametrize("seed", [1, 3])
def test_a_written_module_of_tvm_runs(tmp_path, seed):
    done = run_file(write_test(tmp_path, script_case(seed), Report("wrong", "value: 1 instead of 2"), None))
    assert done.returncode == 0, done.stderr


def test_written_kernels_run(tmp_path):
    done = run_file(write_test(tmp_path, kernel_case(1), Report("wrong", "value: 1 instead of 2"), None))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["ways", "sequences"])
def test_a_written_case_of_several_ways_runs(kind, tmp_path):
    done = run_file(write_test(tmp_path, KINDS[kind](2), Report("wrong", "saved: value: 1 instead of 2"), None))
    assert done.returncode == 0, done.stderr


def test_an_unreadable_file_is_written_as_bytes(tmp_path):
    path = write_test(tmp_path, ModelCase("files", 1, b"\xff\x00", {}), Report("foreign", 'OSError: "x"'), None)
    done = run_file(path)
    assert done.returncode == 0 and "refused" in done.stdout, done.stderr
