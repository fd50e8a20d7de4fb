"""Tiny bundles whose kernels the fake driver knows, and how to run the benchmark in them."""

import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from tvm_rammer.gpu_bundle import bundle
from tvm_rammer.gpu_bundle.files import Files
from tvm_rammer.gpu_bundle.onsite.plan import WATCHED_FOLDER, Plan, PlanBuffer, PlanLaunch, View, plan_to_json
from tvm_rammer.gpu_bundle.toolchain import build_launcher

HERE = pathlib.Path(__file__).parent
VALUES = 64


@functools.cache
def fake_cuda():
    """The path of the compiled fake driver."""
    target = pathlib.Path(tempfile.mkdtemp(), "libfake_cuda.so")
    command = ["gcc", "-O1", "-Wall", "-fPIC", "-shared", str(HERE / "fake_cuda.c"), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


def plan(kernel, cooperative=False, launches=1, source="in.bin", cubin="kernels.cubin"):
    """A plan that runs one kernel of 2 blocks on 64 values, some times."""
    nbytes = 4 * VALUES
    buffers = (PlanBuffer("x", nbytes, "input", source), PlanBuffer("y", nbytes, "memory"))
    views = (View(0, 0, nbytes), View(1, 0, nbytes))
    launch = PlanLaunch(kernel, (2, 1, 1), (VALUES // 2, 1, 1), 1024, cooperative, views)
    return Plan(kernel, buffers, (launch,) * launches, views[1:], {"sm_90": cubin})


def make(folder, models, watched=None, given=None, about=None):
    """Write a bundle: model -> variant -> Plan; some variants have a plan with a watchdog, too.

    `given`: more files, by path; `about`: what else bundle.json says.
    """
    files = Files(folder)
    x = np.random.default_rng(0).standard_normal(VALUES).astype(np.float32)
    files.write("in.bin", x.tobytes())
    files.write("out.bin", (2 * x.astype(np.float64)).tobytes())
    files.write("kernels.cubin", b"\x7fELF fake")
    build_launcher(folder / "launcher.so")
    for path, data in (given or {}).items():
        files.write(path, data)
    for name, variants in models.items():
        for variant, made in (watched or {}).items():
            files.write_json(f"models/{name}/{variant}/{WATCHED_FOLDER}/plan.json", plan_to_json(made))
        for variant, made in variants.items():
            files.write_json(f"models/{name}/{variant}/plan.json", plan_to_json(made))
        facts = {"description": "Twice.", "tolerance": 1e-5, "references": ["out.bin"], "variants": list(variants)}
        files.write_json(f"models/{name}/model.json", facts)
    files.write_json("bundle.json", {"models": dict.fromkeys(models, "Twice."), **(about or {})})
    bundle._add_program(files)
    files.finish()
    return folder


def run(folder, *arguments, libcuda=None, env=None):
    """Run the bundle's script as on a machine that has Python and nothing else."""
    command = [sys.executable, "-I", "-S", "gpu_bench", *arguments]
    if libcuda:
        command += ["--libcuda", str(libcuda)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env={"PATH": "/usr/bin:/bin", **(env or {})}
    )


def results(folder):
    """What the benchmark wrote."""
    return json.loads((folder / "results" / "results.json").read_text())
