"""Ctrl-C ends a command with one line, a status of its own, and all of its processes."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.marks import slow_but
from tvm_rammer.cli import main

from .shell import ROOT, shell

INTERRUPTED = [
    "compile long.onnx -o y.so", "run long.onnx", "explain long.onnx", "report long.onnx -o y.html",
    "export long.onnx -o project --target cuda:h200", "bench long.onnx --repeat 100000", "profile long.onnx",
    "tune long.onnx --trials 500", "warm long.onnx --shape v0=4,9",
]  # fmt: skip


def layers(count: int) -> onnx.ModelProto:
    """Products of as many sizes, which take a while to compile."""
    nodes = [helper.make_node("MatMul", [f"v{n}", f"w{n}"], [f"v{n + 1}"]) for n in range(count)]
    weights = [numpy_helper.from_array(np.ones((9 + n, 10 + n), np.float32), f"w{n}") for n in range(count)]
    ends = [(f"v{n}", [4, 9 + n]) for n in (0, count)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends]
    return helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], weights))


@pytest.mark.parametrize("command", slow_but(["compile long.onnx -o y.so"], INTERRUPTED))
def test_an_interrupted_command_is_one_line_and_ends_with_all_its_processes(command, tmp_path):
    onnx.save(layers(200), tmp_path / "long.onnx")
    process = subprocess.Popen(
        [sys.executable, "-m", "tvm_rammer", *command.split()],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path, start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "RAMMER_CACHE_BYTES": "1000000000"},
    )  # fmt: skip
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=300)[1]
    assert process.returncode == 130, error
    assert error.splitlines()[-1].startswith("tvm-rammer: interrupted")
    assert "Traceback" not in error
    deadline = time.monotonic() + 300  # a worker that is just starting ends when it finds its pipe closed
    while left := subprocess.run(["pgrep", "-s", str(process.pid)], capture_output=True, check=False).stdout:
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    assert not list(tmp_path.glob(".*.so"))


@pytest.mark.parametrize("taken", [True, False])
def test_an_interrupt_arrives_where_a_library_has_taken_the_handler(tmp_path, taken):
    """TVM's prover does so while it works, and keeps what it gets to itself; native code runs no handler."""
    program = f"""
import ctypes, sys
from tvm_rammer.cli import console, explain
libc = ctypes.CDLL(None)
def work(arguments):
    if {taken}:
        libc.signal(2, ctypes.cast(libc.labs, ctypes.c_void_p))
    print("at work", file=sys.stderr, flush=True)
    libc.sleep(100)
explain.run = work
sys.argv = ["tvm-rammer", "explain", "light:squeezenet"]
console()
"""
    (tmp_path / "program.py").write_text(program)
    process = subprocess.Popen(
        [sys.executable, "program.py"], stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stderr.readline() == "at work\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "tvm-rammer: interrupted\n"
    assert process.returncode == 130


def test_what_an_interrupt_brings_along_is_not_told(model, monkeypatch, capsys):
    """TVM's passes put the text of the module that they work on into it."""

    def interrupted(*arguments, **how):
        raise KeyboardInterrupt("@I.ir_module\n(... 872 lines skipped ...)")

    monkeypatch.setattr("tvm_rammer.driver.compile", interrupted)
    assert main(["explain", model]) == 130
    assert capsys.readouterr().err == "tvm-rammer: interrupted\n"


def test_a_job_in_the_background_ignores_interrupts(model):
    line = f"trap '' INT; {sys.executable} -m tvm_rammer explain $MODEL & sleep 1; kill -INT $! || exit; wait $!"
    assert shell(f"({line})", model).returncode == 0
