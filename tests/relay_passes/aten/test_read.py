"""Files of torch.export where PyTorch is not installed."""

import sys

import pytest

import tvm_rammer
from tvm_rammer.cli import main


@pytest.fixture
def program_file(tmp_path, monkeypatch):
    """A file, and no PyTorch."""
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "model.pt2"
    path.write_bytes(b"")
    return path


def test_pytorch_is_missing(program_file):
    with pytest.raises(tvm_rammer.MissingToolError, match=r"model\.pt2.*PyTorch is not installed; pip install torch=="):
        tvm_rammer.compile(program_file)


def test_the_command_line_says_so(program_file, capsys):
    assert main(["explain", str(program_file)]) != 0
    assert "PyTorch is not installed" in capsys.readouterr().err


def test_other_engines_read_no_program():
    from tvm_rammer.benchmark.bench import _source

    with pytest.raises(tvm_rammer.ModelError, match="is no ONNX file"):
        _source("model.pt2")
