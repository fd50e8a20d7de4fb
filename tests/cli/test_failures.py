"""What a shell sees of commands that fail: one line, a status, no file in pieces."""

import json
import os
import pathlib
import shlex
import sys

import numpy as np
import onnx
import pytest

from tests.marks import slow_but
from tvm_rammer.cli import main
from tvm_rammer.cli.main import COMMANDS
from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes.onnx.fix_inputs import fix_inputs

from .shell import relu, shell

EACH = {
    "compile": "compile $MODEL -o y.so",
    "run": "run $MODEL",
    "explain": "explain $MODEL",
    "report": "report $MODEL -o y.html",
    "export": "export $MODEL -o project --target cuda:h200",
    "bench": "bench $MODEL --against stock --repeat 3",
    "profile": "profile $MODEL",
    "fix": "fix $MODEL x=1 -o y.onnx",
    "tune": "tune $MODEL --trials 1 --logs logs",
    "warm": "warm $MODEL --shape x=3",
    "cache": "cache",
    "device": "device",
}
"""Of each command a line that says something on standard output."""

FILES = {
    "run --output": "run $MODEL --output /dev/full",
    "compile -o": "compile $MODEL -o /dev/full",
    "compile --cuda-source": "compile $MODEL --target cuda:h200 -o y.so --cuda-source /dev/full",
    "explain --svg": "explain $MODEL --svg /dev/full",
    "explain --trace": "explain $MODEL --trace /dev/full",
    "report -o": "report $MODEL -o /dev/full",
    "export -o": "export $MODEL -o /dev/full --target cuda:h200",
    "bench --json": "bench $MODEL --against stock --repeat 3 --json /dev/full",
    "profile --svg": "profile $MODEL --svg /dev/full",
    "profile --trace": "profile $MODEL --trace /dev/full",
    "fix -o": "fix $MODEL x=1 -o /dev/full",
    "tune --logs": "tune $MODEL --trials 1 --logs /dev/full",
}


def test_no_command_is_left_out():
    assert [command.__name__.rpartition(".")[2] for command in COMMANDS] == list(EACH)


def fails_in_one_line(command: str, model: str) -> str:
    """What a command says that cannot write."""
    done = shell(f"export RAMMER_CACHE_BYTES=1000000000; {command}", model)
    assert done.returncode == 1
    (last,) = done.stderr.splitlines()
    assert last.startswith("tvm-rammer: ")
    return last


@pytest.mark.parametrize("command", slow_but(["explain", "cache"], EACH))
def test_a_full_disk_behind_standard_output_is_one_line(model, command):
    assert "No space left on device" in fails_in_one_line(f"rammer {EACH[command]} > /dev/full", model)


@pytest.mark.parametrize("command", slow_but(["explain", "cache"], EACH))
def test_a_closed_pipe_is_one_line(model, command):
    assert "what reads standard output has closed it" in fails_in_one_line(f"rammer {EACH[command]} | true", model)


@pytest.mark.parametrize("command", slow_but(["run --output"], FILES))
def test_a_file_that_cannot_be_written_is_one_line(model, command):
    assert "/dev/full" in fails_in_one_line(f"rammer {FILES[command]}", model)


@pytest.mark.parametrize("command", ["compile $MODEL -o y.so", "compile $MODEL -o y.rammer"])
def test_a_disk_that_becomes_full_leaves_no_file_in_pieces(model, command):
    """LLVM would end the process, at once and without a word of ours."""
    last = fails_in_one_line(f"export PYTHONDONTWRITEBYTECODE=1; ulimit -f 2; rammer {command} --no-cache", model)
    assert "there is no room for 32 MB in" in last
    assert os.listdir(pathlib.Path(model).parent) == ["model.onnx"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "{model}", "--output", "nowhere/y.npz"], "cannot write 'nowhere/y.npz'"),
        (["compile", "{model}", "-o", "nowhere/y.so"], "cannot write 'nowhere/y.so'"),
        (["bench", "{model}", "--json", "nowhere/y.json"], "cannot write 'nowhere/y.json'"),
        (["profile", "{model}", "--svg", "nowhere/y.svg"], "cannot write 'nowhere/y.svg'"),
        (["fix", "{model}", "x=1", "-o", "nowhere/y.onnx"], "cannot write 'nowhere/y.onnx'"),
        (["run", "{model}", "--input", "x=nowhere.npy"], "nowhere.npy"),
        (["run", "{model}", "--input", "z={array}"], "the model has no input 'z'; its inputs are 'x'"),
        (["run", "{model}", "--input", "x={array}"], "input 'x' is float64[2], but the model takes float32[3]"),
        (["run", "{model}", "--input", "x={empty}"], "give NAME=FILE.npy"),
    ],
)
def test_files_are_looked_at_before_anything_is_compiled(model, arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tvm_rammer.compilation.compiler.compile_loaded", lambda *a, **k: pytest.fail("compiled"))
    np.save(tmp_path / "array.npy", np.zeros(2))
    (tmp_path / "empty.npy").touch()
    names = {"{model}": model, "{array}": str(tmp_path / "array.npy"), "{empty}": str(tmp_path / "empty.npy")}
    for pattern, name in names.items():
        arguments = [a.replace(pattern, name) for a in arguments]
    assert main(arguments) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert message in error


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_lead_nowhere(model, closed):
    """Files would take their places else."""
    assert shell(f"rammer compile $MODEL --no-cache -o y.rammer {closed}", model, sys.executable).returncode == 0
    assert "output y: float32[3]" in shell("rammer run y.rammer", model).stdout
    assert shell(f"rammer run nowhere.onnx {closed}", model, sys.executable).returncode == 1


def test_names_that_an_encoding_lacks_are_spelled_out(model):
    lines = """
        name=$(printf 'b\\xff\\xc3\\xa4'); cp $MODEL $name.onnx
        rammer compile $name.onnx -o $name.rammer || exit
        rammer report $name.onnx -o y.html --runs 0 || exit
        export RAMMER_CACHE=$name RAMMER_CACHE_BYTES=1000000000; rammer run $name.onnx && rammer run $name.onnx || exit
        rammer run $name.rammer
    """
    done = shell(f"export LC_ALL=C.UTF-8 PYTHONIOENCODING=ascii; {lines.strip()}", model, sys.executable)
    assert done.stdout.startswith("wrote b\\udcff"), done.stderr
    assert done.stdout.count("output y: float32[3]") == 2
    assert done.returncode == 1
    (error,) = done.stderr.splitlines()
    assert "TVM opens files by names in UTF-8 only" in error and "rename it" in error


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run {model} --output ''", "cannot write '': it is a folder"),
        ("explain {model} --svg ''", "cannot write '': it is a folder"),
        ("run {model} --shape x=3 --shape x=4", "--shape names 'x' twice, (3,) and (4,)"),
        ("run {model} --input x={array} --input x={array}", "--input names 'x' twice"),
        ("warm {model} --shape x=4", "its dimension 3 cannot become 4"),
        ("warm {open} --shape n=1..999999999999", "are at least 10001 modules"),
        ("tune {model} --seed -1", "--seed is -1; give an integer, at least 0"),
        ("run {model} --input x={model}", "model.onnx' is no array of NumPy's; give NAME=FILE.npy"),
        ("fix {model} x=one -o y.onnx", "'x=one': 'one' is no number; give NAME=NUMBER"),
        ("tune {model} --trials 0", "--trials is 0; give an integer, at least 1"),
        ("tune {model} --target cuda:h200 --export a --import b", "give one of them"),
        ("export {copy} -o project --target cuda:h200", "launches no kernel"),
    ],
)
def test_arguments_that_make_no_sense_are_one_line(model, command, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "array.npy", np.zeros(3, "float32"))
    copy, opened = relu(), relu()
    copy.graph.node[0].op_type = "Identity"
    for value in (*opened.graph.input, *opened.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(copy, tmp_path / "copy.onnx")
    onnx.save(opened, tmp_path / "open.onnx")
    names = {"model": model, "array": "array.npy", "open": "open.onnx", "copy": "copy.onnx"}
    monkeypatch.setenv("RAMMER_CACHE_BYTES", "1000000000")
    assert main(shlex.split(command.format(**names))) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert message in error


def test_a_defect_is_one_line(model, monkeypatch, capsys):
    def broken(*arguments, **how):
        raise TypeError("unexpected\nin two lines")

    monkeypatch.setattr("tvm_rammer.driver.compile", broken)
    assert main(["explain", model]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert "a defect of this program: TypeError: unexpected" in error


@pytest.mark.parametrize("value", [None, "3", [1.0, None, 2.0]])
def test_what_is_no_number_fixes_no_input(value, model, tmp_path, capsys):
    with pytest.raises(ModelError, match="is no number"):
        fix_inputs(relu(), {"x": value})
    assert main(["fix", model, f"x={json.dumps(value)}", "-o", str(tmp_path / "fixed.onnx")]) == 1
    assert "is no number" in capsys.readouterr().err
