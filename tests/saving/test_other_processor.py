"""Saved models on an emulated processor of 2008: what it cannot run is refused, and does not end the process."""

import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import tvm

import tvm_rammer
from tests.two_inputs import two_inputs
from tvm_rammer.device import host_cpu

ROOT = pathlib.Path(tvm_rammer.__file__).parents[1]
QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulated processor is an x86"),
    pytest.mark.skipif(QEMU is None, reason="needs qemu-x86_64, of the package qemu-user"),
]

CPUINFO = "processor\t: 0\nmodel name\t: Nehalem\nflags\t\t: fpu sse sse2 ssse3 sse4_1 sse4_2 popcnt\n\n"
"""What Linux says of such a processor: qemu emulates its instructions, and leaves this to the machine's own Linux."""

LOAD = """
import sys
import numpy as np
import tvm_rammer
try:
    model = tvm_rammer.load(sys.argv[1])
    print(np.asarray(model(*(np.ones(s.shape, s.dtype) for s in model.inputs))[0]).sum())
except tvm_rammer.RammerError as error:
    print(type(error).__name__, error)
"""


def saved(path, arch):
    target = tvm.target.Target({"kind": "llvm", "mcpu": arch, "num-cores": 2})
    return tvm_rammer.compile(two_inputs(), target=target).save(path / f"{arch}.rammer")


def on_nehalem(model, root):
    """Load a model and call it there; `root` holds files that are seen in the place of the machine's own."""
    without_core = ["bash", "-c", 'ulimit -c 0; exec "$@"', "bash"]
    return subprocess.run(
        [*without_core, QEMU, "-cpu", "Nehalem", "-L", root, sys.executable, "-c", LOAD, model],
        capture_output=True, text=True, timeout=300, check=False, cwd=root, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.fixture
def root(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(CPUINFO, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("arch", ["x86-64-v3", "x86-64-v4"])
def test_code_that_it_lacks_instructions_for_is_refused(arch, root):
    done = on_nehalem(saved(root, arch), root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SavedModelError") and "cannot run here: this processor has no avx" in done.stdout


def test_code_for_it_runs(root):
    path = saved(root, "x86-64")
    want = np.asarray(tvm_rammer.load(path)(*(np.ones(s.shape, s.dtype) for s in tvm_rammer.load(path).inputs))[0])
    done = on_nehalem(path, root)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(float(done.stdout), want.sum(), rtol=1e-5)


@pytest.mark.skipif(host_cpu().vector_bytes < 64, reason="this machine has no AVX-512 to be mistaken about")
def test_the_emulated_processor_really_lacks_them(tmp_path):
    """Told that it had what this machine has, the process ends by the first such instruction."""
    done = on_nehalem(saved(tmp_path, "x86-64-v4"), tmp_path)
    assert done.returncode in (-signal.SIGILL, 128 + signal.SIGILL), done.stdout
