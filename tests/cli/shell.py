"""A shell that knows the commands, and a model for them."""

import os
import pathlib
import subprocess

import onnx
from onnx import TensorProto, helper

from tests.forking import python

ROOT = pathlib.Path(__file__).parents[2]


def relu() -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph)


def shell(command: str, model: str, interpreter: str = "") -> subprocess.CompletedProcess:
    """Run a line in a shell that knows `rammer` and `$MODEL`; what it fails by is the status of the first command."""
    line = f'rammer() {{ "{interpreter or python()}" -m tvm_rammer "$@"; }}; {command}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MODEL": model}, cwd=pathlib.Path(model).parent,
    )  # fmt: skip
