"""How PyTorch finds the backend."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")

import tvm_rammer.torch_backend as backend

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
import sys, torch
if {first}:
    import tvm_rammer.torch_backend
made = torch.compile(lambda x: x + 1, backend="rammer", options={{"cache": False}})
print(made(torch.ones(2)).tolist(), [len(g.modules) for g in sys.modules["tvm_rammer.torch_backend"].compiled_graphs()])
"""


def test_the_entry_point_is_the_backend():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["torch_dynamo_backends"]
    assert table.keys() == {"rammer"}
    point = importlib.metadata.EntryPoint("rammer", table["rammer"], "torch_dynamo_backends")
    assert point.load() is backend.rammer


@pytest.fixture
def installed(tmp_path):
    """A folder for PYTHONPATH that says what an installed package says of its entry points."""
    about = tmp_path / "rammer_entry-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rammer-entry\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[torch_dynamo_backends]\nrammer = tvm_rammer.torch_backend:rammer\n")
    return tmp_path


@pytest.mark.parametrize("first", [False, True])
def test_the_name_is_found_by_entry_point_and_after_an_import(installed, first):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(first=first)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{installed}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.strip() == "[2.0, 2.0] [1]", done.stderr


def test_the_name_is_registered():
    assert "rammer" in torch._dynamo.list_backends()
