"""The Python of the page about PyTorch runs."""

import os
import subprocess
import sys

import pytest

from ..test_docs import ROOT, TORCH, blocks

pytest.importorskip("torch", reason="PyTorch is an optional dependency")


def test_the_python_of_the_page_runs(tmp_path):
    # Installed packages are found by entry points; here nothing need be installed.
    script = "\n".join(["import tvm_rammer.torch_backend", *blocks(TORCH)])
    (tmp_path / "page.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "leaves a graph to PyTorch" not in done.stderr
