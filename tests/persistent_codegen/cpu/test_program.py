"""Programs run right: with any number of vEUs, many times, and with fewer workers than vEUs."""

import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tests.functions import TARGET
from tvm_rammer.compilation.launch import schedule_regions
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.device import host_cpu
from tvm_rammer.relay_passes import finish, load_model, prepare

ROOT = pathlib.Path(__file__).parents[3]


def diamond():
    """A module of two convolution branches that meet again, and what comes after."""
    rng = np.random.default_rng(0)

    def const(*shape):
        return relax.const(rng.standard_normal(shape).astype("float32") / 8)

    x = relax.Var("x", relax.TensorType((1, 16, 20, 20), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            stem = builder.emit(op.nn.relu(op.nn.conv2d(x, const(32, 16, 1, 1))))
            left = builder.emit(op.nn.conv2d(stem, const(32, 32, 3, 3), padding=1))
            right = builder.emit(op.nn.max_pool2d(stem, (3, 3), padding=1))
            both = builder.emit(op.concat([left, right], axis=1))
            last = builder.emit(op.nn.conv2d(both, const(16, 64, 1, 1)))
            mean = builder.emit(op.mean(last, (2, 3)))
            out = builder.emit_output(relax.Tuple([op.nn.softmax(mean), left]))
        builder.emit_func_output(out)
    return builder.get()


def planned(veus, **how):
    """The module with its rPrograms for a CPU of so many cores, and the record of it."""
    record = Compilation(replace(host_cpu(), units=veus), **how)
    mod = prepare(TARGET)(load_model(diamond()))
    return finish(TARGET)(schedule_regions(mod, record)), record


def scheduled(veus, **how):
    """The same, compiled."""
    mod, record = planned(veus, **how)
    return tvm.compile(mod, TARGET, relax_pipeline=tvm.transform.Sequential([])), record


def results(executable, x):
    out = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x))
    return [t.numpy() for t in out]


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(1).standard_normal((1, 16, 20, 20)).astype("float32")


@pytest.fixture(scope="module")
def want(x):
    return results(tvm.compile(load_model(diamond()), TARGET), x)


@pytest.mark.parametrize("veus", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("sync", ["auto", "global"])
def test_results_are_right_for_any_number_of_veus(veus, sync, x, want):
    executable, record = scheduled(veus, sync=sync)
    assert [len(p.lanes) for p in record.programs] == [veus] * len(record.programs)
    for got, expected in zip(results(executable, x), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_every_run_gives_the_same(x):
    executable, _ = scheduled(2)
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    tensor = tvm.runtime.tensor(x)
    first = [t.numpy() for t in main(tensor)]
    for _ in range(200):
        for got, expected in zip(main(tensor), first, strict=True):
            np.testing.assert_array_equal(got.numpy(), expected)


def test_a_region_becomes_one_call(x):
    record = Compilation(host_cpu())
    mod = schedule_regions(prepare(TARGET)(load_model(diamond())), record)
    calls = [b.value for block in mod["main"].body.blocks for b in block.bindings if isinstance(b.value, relax.Call)]
    assert len(calls) == len(record.programs) == 1
    assert sum(len(g.operators) for g in record.graphs) >= 6


@pytest.mark.parametrize("workers", ["1", "2"])
def test_fewer_workers_than_veus(workers, tmp_path, x, want):
    """In a process of its own, where the user says how many workers there are."""
    np.save(tmp_path / "x.npy", x)
    script = (
        "import sys, numpy as np\n"
        "from tests.persistent_codegen.cpu.test_program import results, scheduled\n"
        "executable, _ = scheduled(8)\n"
        "np.savez(sys.argv[2], *results(executable, np.load(sys.argv[1])))\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, tmp_path / "x.npy", tmp_path / "out.npz"],
        env=os.environ | {"TVM_NUM_THREADS": workers, "PYTHONPATH": str(ROOT)},
        check=True,
        timeout=300,
    )
    with np.load(tmp_path / "out.npz") as got:
        for name, expected in zip(got.files, want, strict=True):
            np.testing.assert_allclose(got[name], expected, rtol=1e-4, atol=1e-5)
