"""`tvm-rammer warm`, and models of open shapes in other commands."""

import numpy as np
import onnx
import pytest

from tests.two_inputs import two_inputs
from tvm_rammer.cli import main


@pytest.fixture
def model(tmp_path, monkeypatch, with_cache):
    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path / "cache"))
    onnx.save(two_inputs("batch"), tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


def told(capsys):
    return [line.rpartition(": ")[::2] for line in capsys.readouterr().out.splitlines()]


def test_every_size_is_compiled_once(model, capsys):
    assert main(["warm", model, "--shape", "batch=1,2..4:2"]) == 0
    assert [what for what, _ in told(capsys)] == [f"x {n}x16, b {n}x32" for n in (1, 2, 4)]
    assert main(["warm", model, "--shape", "batch=2,3"]) == 0
    lines = told(capsys)
    assert lines[0] == ("x 2x16, b 2x32", "was there")
    assert lines[1][0] == "x 3x16, b 3x32"
    assert lines[1][1] != "was there"


def test_shapes_of_inputs_are_combined(model, capsys):
    shapes = ["--shape", "x=1,16", "--shape", "x=2,16"]
    assert main(["warm", model, *shapes]) == 0
    assert [what for what, _ in told(capsys)] == ["x 1x16, b 1x32", "x 2x16, b 2x32"]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], "give it a shape, or a size to each symbolic dimension"),
        (["batch=4..2"], "has the range 4..2, which is empty"),
        (["batch=a"], "is not of the form NAME=320,640 or NAME=32..1024:32"),
        (["width=3"], "'width', which is no input"),
        (["x=1,a"], "is not of the form NAME=1,3,224,224"),
        (["batch=1..100000"], "are at least 10001 modules, of which one command compiles"),
        (["x=1,17"], "its dimension 16 cannot become 17"),
    ],
)
def test_wrong_shapes_are_named(model, capsys, shapes, message):
    assert main(["warm", model, *(word for text in shapes for word in ("--shape", text))]) == 1
    assert message in capsys.readouterr().err


def test_what_is_not_kept_is_not_warmed(model, capsys, monkeypatch):
    assert main(["warm", model, "--shape", "batch=1", "--target", "cuda:h200"]) == 1
    assert "are not kept in the cache; leave out --target" in capsys.readouterr().err
    monkeypatch.setenv("RAMMER_CACHE_BYTES", "0")
    assert main(["warm", model, "--shape", "batch=1"]) == 1
    assert "RAMMER_CACHE_BYTES is 0" in capsys.readouterr().err


def test_run_takes_the_shapes_of_its_inputs(model, capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 16), "float32"))
    assert main(["run", model, "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    assert "output y: float32[3, 32]" in capsys.readouterr().out


def test_run_finds_what_was_warmed(model, capsys, tmp_path):
    assert main(["warm", model, "--shape", "batch=2"]) == 0
    kept = sorted(path.name for path in (tmp_path / "cache").rglob("*.rammer"))
    assert main(["run", model, "--shape", "batch=2"]) == 0
    assert "output y: float32[2, 32]" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*.rammer")) == kept


@pytest.mark.parametrize("command", [["explain"], ["bench", "--against", ""], ["compile", "-o", "{model}.rammer"]])
def test_commands_for_one_shape_ask_for_it(model, capsys, command):
    assert main([command[0], model, *(word.format(model=model) for word in command[1:])]) == 1
    assert "'x' is (batch, 16); give it a shape" in capsys.readouterr().err
