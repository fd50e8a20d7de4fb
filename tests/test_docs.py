"""The Python of README and docs runs, page by page."""

import os
import pathlib
import re
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).parents[1]

PAGES = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```python" in path.read_text(encoding="utf-8") and path.name != "torch.md"  # tests/torch_backend has it
]

PREAMBLE = """
import numpy as np
import onnx
import tvm
import tvm_rammer
from tvm.relax.frontend.onnx import from_onnx

model = detector = reader = onnx.load("static.onnx")
target = tvm.target.Target({"kind": "llvm", "num-cores": 2})
mod = from_onnx(onnx.load("static.onnx"), keep_params_in_input=False)
"""
"""What the pages suppose: models in the folder, and names for them."""


def blocks(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def pooled(batch, rate: bool) -> onnx.ModelProto:
    """Means of an image, perhaps times a sample rate."""
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["mean"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 224, 224])]
    if rate:
        nodes.append(helper.make_node("Cast", ["sr"], ["rate"], to=TensorProto.FLOAT))
        inputs.append(helper.make_tensor_value_info("sr", TensorProto.INT64, []))
    nodes.append(helper.make_node("Mul" if rate else "Relu", ["mean", "rate"] if rate else ["mean"], ["y"]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 3, 1, 1])]
    graph = helper.make_graph(nodes, "pooled", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, tmp_path):
    onnx.save(pooled("batch", rate=False), tmp_path / "model.onnx")
    onnx.save(pooled(1, rate=True), tmp_path / "static.onnx")
    (tmp_path / "tuning_logs").symlink_to(ROOT / "tuning_logs")
    script = "\n".join([PREAMBLE, *blocks(page)])
    (tmp_path / "page.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_all_pages_with_python_are_there():
    assert {"README.md", "onnxruntime.md", "saving.md", "registering-kernels.md"} <= {page.name for page in PAGES}
