"""Long loops of stock functions are walked by workers, and each element is what one thread makes of it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, te, tirx

import tvm_rammer
from tests.relay_passes.models import model, node, random, tensor, value
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.kernel import SPREAD
from tvm_rammer.persistent_codegen import CPU_PIPELINE, spread_loops
from tvm_rammer.relay_passes import finish
from tvm_rammer.relay_passes.passes.elements import spread_rounds
from tvm_rammer.relay_passes.passes.sums import tile_code

ROWS = (0, 1, 7, 50)
K, N = 300, 128
DEVICE = resolve_device("cpu")


@pytest.fixture
def short(monkeypatch):
    """Short loops are spread, too, and sums come in parts."""
    monkeypatch.setattr(tile_code, "LEAST_SPREAD", 1)
    monkeypatch.setattr(tile_code, "MOST_STEPS", 128)
    monkeypatch.setattr(spread_rounds, "LEAST_SPREAD", 1)
    monkeypatch.setattr(spread_rounds, "CHUNK", 48)


def dense():
    """A product of as many rows as come, with what is added to it."""
    n = tirx.Var("n", "int64")
    x, w, b = (relax.Var(name, relax.TensorType(shape)) for name, shape in (("x", (n, K)), ("w", (K, N)), ("b", (N,))))

    def compute(x, w, b):
        k = te.reduce_axis((0, K), "k")
        y = te.compute((x.shape[0], N), lambda i, j: te.sum(x[i, k] * w[k, j], k), "product")
        return te.compute(y.shape, lambda i, j: y[i, j] + b[j], "biased")

    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, b]):
        builder.emit_func_output(builder.emit_te(compute, x, w, b))
    return builder.get()


def built(mod):
    target = tvm_target(DEVICE)
    executable = tvm.compile(mod, target, relax_pipeline=tvm.transform.Sequential([]), tir_pipeline=CPU_PIPELINE)
    return relax.VirtualMachine(executable, tvm.cpu())["main"]


def without_marks(mod):
    def unmarked(loop):
        return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, loop.body)

    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            made.update_func(
                var, func.with_body(tvm_ffi.structural_map(func.body, [(tirx.For, unmarked)], order="post"))
            )
    return made


def test_sums_are_not_taken_from_the_heap(short):
    """An array for each tile took longer to get than to add up."""
    mod = finish(tvm_target(DEVICE))(dense())
    for made in (spread_loops(mod, DEVICE), without_marks(mod)):
        target = tvm_target(DEVICE)
        executable = tvm.compile(made, target, relax_pipeline=tvm.transform.Sequential([]), tir_pipeline=CPU_PIPELINE)
        (library,) = [each for each in executable.mod.imports if each.kind == "llvm"]
        # The product is; a bias is added to it.
        assert library.inspect_source("ll").count("load ptr, ptr @__TVMBackendAllocWorkspace") == 1


def test_each_element_is_that_of_one_thread(short):
    mod = finish(tvm_target(DEVICE))(dense())
    assert SPREAD in mod.script()
    spread = spread_loops(mod, DEVICE)
    walks = [var.name_hint for var in spread.get_global_vars() if "_walk" in var.name_hint]
    assert len(walks) == 2  # the product's, and that of the bias
    assert spread_loops(without_marks(mod), DEVICE).script() == without_marks(mod).script()
    one, many = built(without_marks(mod)), built(spread)
    w, b = random(K, N), random(N, seed=2)
    for rows in ROWS:
        x = random(rows, K, seed=rows)
        want, got = (run(*map(tvm.runtime.tensor, (x, w, b))).numpy() for run in (one, many))
        assert np.array_equal(got, want), rows
        np.testing.assert_allclose(got, x @ w + b, rtol=1e-4, atol=1e-4)


def chosen():
    nodes = [
        node("Compress", ["x", "c"], ["r"], axis=0),
        node("MatMul", ["r", "w"], ["m"]),
        node("Add", ["m", "b"], ["y"]),
    ]
    constants = [tensor("w", random(K, N)), tensor("b", random(N, seed=2))]
    return model(nodes, [value("x", [max(ROWS), K]), value("c", [max(ROWS)], 9)], ["y"], constants)


def test_many_threads_at_once(short):
    module = tvm_rammer.compile(chosen(), cache=False)
    x = random(max(ROWS), K, seed=3)
    choices = [np.arange(len(x)) < rows for rows in ROWS]
    want = [module(x, choice) for choice in choices]
    for rows, y in zip(ROWS, want, strict=True):
        np.testing.assert_allclose(y, x[:rows] @ random(K, N) + random(N, seed=2), rtol=1e-4, atol=1e-4)
    with ThreadPoolExecutor(4) as pool:
        for n, y in enumerate(pool.map(lambda i: module(x, choices[i % len(choices)]), range(200))):
            assert np.array_equal(y, want[n % len(choices)])


LOADED = """
import sys
import numpy as np, tvm
from tvm import relax
folder = sys.argv[1]
library = relax.VirtualMachine(tvm.runtime.load_module(f"{folder}/model.so"), tvm.cpu())
given = np.load(f"{folder}/given.npz")
got = library["main"](*(tvm.runtime.tensor(given[name]) for name in ("x", "c")))
got = got[0] if not hasattr(got, "numpy") else got
assert np.array_equal(got.numpy(), given["y"])
"""


def test_a_library_that_plain_tvm_loads(short, tmp_path):
    module = tvm_rammer.compile(chosen(), cache=False)
    x, c = random(max(ROWS), K, seed=4), np.arange(max(ROWS)) % 3 > 0
    np.savez(tmp_path / "given.npz", x=x, c=c, y=module(x, c))
    module.export_library(tmp_path / "model.so")
    done = subprocess.run([sys.executable, "-c", LOADED, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
