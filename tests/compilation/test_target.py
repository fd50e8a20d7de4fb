"""TVM targets are kept whole: for other processors of this kind, and for other kinds of processor."""

import re
import shutil
import subprocess

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.compilation.target import resolve_device
from tvm_rammer.device import host_cpu, why_not_here
from tvm_rammer.errors import TargetError, ToolError
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.lstm_stack import lstm_stack

ARM = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76", "num-cores": 2}


def llvm_of(module):
    """The code of its programs, and that of the workers."""
    programs, workers = (m for m in module.executable.mod.imports if m.kind == "llvm")
    return programs, workers


@pytest.mark.parametrize(
    ("config", "vector_bytes"),
    [
        ({"mcpu": "x86-64"}, 16),
        ({"mcpu": "x86-64-v3"}, 32),
        ({"mcpu": "znver3"}, 32),
        ({"mcpu": "skylake-avx512"}, 64),
        ({"mcpu": "x86-64-v3", "mattr": ["-avx2"]}, 16),
        ({"mtriple": "x86_64-linux-gnu"}, 16),
        ({"mtriple": "aarch64-linux-gnu"}, 16),
    ],
)
def test_vectors_are_those_that_llvm_has_for_the_target(config, vector_bytes):
    target = tvm.target.Target({"kind": "llvm", **config})
    device = resolve_device(target)
    assert device.vector_bytes == vector_bytes
    again = tvm.target.Target(device.target_config()).export()
    assert all(list(again[k]) == v if isinstance(v, list) else again[k] == v for k, v in config.items())


@pytest.mark.parametrize("triple", ["wasm32-unknown-unknown-wasm", "armv7-linux-gnueabihf", "arm64-apple-darwin"])
def test_a_processor_or_system_without_workers_is_refused(triple):
    with pytest.raises(TargetError, match=f"no workers for the mtriple {triple!r}, only for Linux on x86_64, "):
        resolve_device(tvm.target.Target({"kind": "llvm", "mtriple": triple}))


def test_a_program_for_a_processor_whose_pause_is_not_known():
    target = tvm.target.Target({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "num-cores": 2})
    module = tvm_rammer.compile(relax_module([(4, 8)], relax.op.exp), target=target)
    assert all('"riscv64-' in part.inspect_source("ll") for part in llvm_of(module))


def test_a_device_of_a_target_is_a_target_again():
    device = resolve_device(tvm.target.Target(ARM))
    assert resolve_device(tvm.target.Target(device.target_config())) == device
    assert device.machine == "aarch64" and host_cpu().machine == ""


@pytest.fixture(scope="module")
def for_arm():
    return tvm_rammer.compile(inception_module(), target=tvm.target.Target(ARM))


def test_a_foreign_processor_gets_its_own_instructions(for_arm):
    programs, workers = (module.inspect_source("asm") for module in llvm_of(for_arm))
    assert "zmm" not in programs and "xmm" not in programs
    assert programs.count("fmla") > 100  # NEON's multiply-add, from the same rules
    assert re.search(r"^\s+isb$", workers, re.MULTILINE)  # how an AArch64 pauses


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf, of binutils")
@pytest.mark.parametrize("part", [0, 1])
def test_its_object_files_are_for_that_processor(part, for_arm, tmp_path):
    path = tmp_path / "model.o"
    llvm_of(for_arm)[part].write_to_file(str(path))
    header = subprocess.run(["readelf", "-h", path], capture_output=True, text=True, check=True).stdout
    assert "AArch64" in header


def test_foreign_code_is_not_run(for_arm):
    with pytest.raises(ToolError, match=r"compiled for cortex-a76, .* code for aarch64"):
        for_arm(np.zeros(for_arm.inputs[0].shape, "float32"))


def test_code_for_registers_that_are_missing_is_not_run(monkeypatch):
    module = tvm_rammer.compile(lstm_stack(1, 1, 8), target=tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3"}))
    monkeypatch.setattr("tvm_rammer.device.host.cpu_flags", lambda: {"sse2"})
    assert "no avx2, fma" in why_not_here(module.compilation.device)


def test_a_plain_target_is_right_here():
    model = inception_module(channels=16, size=12, widths=(8, 8, 16, 4, 8, 8))
    module = tvm_rammer.compile(model, target=tvm.target.Target({"kind": "llvm", "num-cores": 2}))
    best = tvm_rammer.compile(model)
    x = np.random.default_rng(0).standard_normal(module.inputs[0].shape).astype("float32")
    np.testing.assert_allclose(module(x), best(x), rtol=1e-4, atol=1e-4)


def test_threads_are_the_veus_of_a_cpu():
    module = tvm_rammer.compile(lstm_stack(1, 2, 64), threads=3)
    assert [len(program.lanes) for program in module.rprograms] == [3]
    inputs = [np.ones(spec.shape, spec.dtype) for spec in module.inputs]
    alone = tvm_rammer.compile(lstm_stack(1, 2, 64), threads=1)
    np.testing.assert_allclose(module(*inputs), alone(*inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"threads": 0}, "threads is 0; give an integer, from 1 to 1024"),
        ({"threads": "2"}, "threads is '2'"),
        ({"threads": 2, "target": "cuda:h100"}, "threads is 2, but .* is no CPU; leave it out"),
    ],
)
def test_impossible_threads_are_refused(how, message):
    with pytest.raises(TargetError, match=message):
        tvm_rammer.compile(lstm_stack(1, 1, 8), **how)
