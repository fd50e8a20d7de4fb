"""`tvm-rammer report`, as a user types it."""

import json
import re

import onnx
import pytest

from tests.two_inputs import two_inputs
from tvm_rammer.cli import main

SHAPES = ["--shape", "batch=2"]


@pytest.fixture
def model(tmp_path):
    onnx.save(two_inputs("batch"), tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


def data_of(path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S)
    return json.loads(found.group(1))


def test_a_real_run_stands_beside_the_plan(model, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", model, *SHAPES, "--threads", "1", "--runs", "3", "-o", str(out)]) == 0
    assert f"wrote {out} (" in capsys.readouterr().out
    data = data_of(out)
    assert (data["model"], data["note"], data["contenders"]) == ("model.onnx", "", None)
    assert data["executions"] == ["planned", "measured"]
    assert data["facts"]["measured_us"] > 0
    assert all(row["measured_us"] > 0 for row in data["kernels"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--target", "cuda:h200"], "Planned for cuda:h200"), (["--runs", "0"], "the model was not run")],
)
def test_without_a_run_the_plan_stands_alone(options, reason, model, tmp_path):
    out = tmp_path / "report.html"
    assert main(["report", model, *SHAPES, *options, "-o", str(out)]) == 0
    data = data_of(out)
    assert data["executions"] == ["planned"]
    assert data["facts"]["measured_us"] is None
    assert reason in data["note"]


def test_a_saved_model_has_its_plan(model, tmp_path):
    saved, out = str(tmp_path / "model.rammer"), tmp_path / "report.html"
    assert main(["compile", model, *SHAPES, "--threads", "1", "-o", saved]) == 0
    assert main(["report", saved, "-o", str(out)]) == 0
    assert "A saved model does not note the time" in data_of(out)["note"]
    assert data_of(out)["kernels"]


def test_nothing_is_compared_with_a_plan_for_another_machine(model, tmp_path, capsys):
    command = ["report", model, *SHAPES, "--target", "cuda:h200", "--against", "stock", "-o", str(tmp_path / "r.html")]
    assert main(command) == 1
    assert "nothing to compare, leave out --against stock: Planned for cuda:h200" in capsys.readouterr().err


@pytest.mark.slow
def test_contenders_are_on_the_page(model, tmp_path):
    out = tmp_path / "report.html"
    command = ["report", model, *SHAPES, "--runs", "3", "--against", "stock-same-kernels", "--repeat", "2"]
    assert main([*command, "-o", str(out)]) == 0
    ours, other = data_of(out)["contenders"]
    assert (ours[0], ours[3], other[0]) == ("rammer", 1.0, "stock-same-kernels")
    assert other[3] == pytest.approx(other[1] / ours[1], rel=0.01, abs=1e-3)
