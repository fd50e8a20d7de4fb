"""Hand-written rKernels: matched, checked, and run beside the constructed ones."""

import pathlib
import tempfile

import numpy as np
import pytest
from tvm import relax, tirx
from tvm.script import tirx as T

import tvm_rammer
from tests.emulation.programs import H200, build
from tests.functions import fused, relax_module
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import CodegenError
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run
from tvm_rammer.rkernel_gen.registered import (
    CudaSource,
    TirKernel,
    register_rkernel,
    registered_rules,
    unregister_rkernel,
)
from tvm_rammer.rkernel_gen.tiling import Function

SHAPE = (8, 64)
SOURCE = """
#ifndef TURN_ROW
#define TURN_ROW
extern "C" __device__ void turn_row(float* x, float* y, unsigned char* shared, int rtask, int tid) {
  float* row = (float*)shared;
  row[tid] = x[rtask * 64 + tid];
  __barrier_sync_count(1, 64);
  y[rtask * 64 + tid] = 2.0f * row[63 - tid];
}
#endif
"""
TURN = CudaSource("turn_row", SOURCE, num_rtasks=8, threads=64, shared_bytes=256, rtask_us=1.5)


def negated(rows):
    """The function that negates some rows."""

    @T.prim_func(s_tir=True)
    def negate(x: T.Buffer(SHAPE, "float32"), y: T.Buffer(SHAPE, "float32")):
        for row in T.parallel(rows):
            for column in range(64):
                y[row, column] = T.float32(0) - x[row, column]

    return negate


negate = negated(8)


def double_of_flip(x):
    return relax.op.multiply(relax.op.flip(x, 1), relax.const(2.0, "float32"))


@pytest.fixture
def register():
    names = []

    def add(name, pattern, make, kind):
        names.append((name, kind))
        register_rkernel(name, pattern, make, kind=kind)
        return registered_rules(kind)[-1]

    yield add
    for name, kind in names:
        unregister_rkernel(name, kind=kind)
    assert not registered_rules("cpu") and not registered_rules("cuda")


def function(make=double_of_flip, device=H200):
    return Function("op", fused([SHAPE], make), device)


def test_a_pattern_is_a_function_or_a_predicate(register):
    wanted = function()
    by_structure = register("same", function().func, lambda f, d: [TURN], "cuda")
    by_predicate = register("any", lambda f: len(f.params) == 2, lambda f, d: [TURN, TURN], "cuda")
    assert [t.num_rtasks for t in by_structure.tilings(wanted)] == [8]
    assert [t["variant"] for t in by_predicate.tilings(wanted)] == [0, 1]
    other = function(relax.op.exp)
    assert not by_structure.tilings(other) and len(by_predicate.tilings(other)) == 2
    assert by_structure.build(wanted, {"variant": 1}) is None


def test_cuda_source_runs_as_rtasks(register):
    rule = register("turn", lambda f: True, lambda f, d: [TURN], "cuda")
    kernel = rule.build(function(), {"variant": 0})
    spec = kernel.spec
    assert (spec.num_rtasks, spec.threads, spec.shared_bytes, spec.rtask_us) == (8, 64, 256, 1.5)
    assert spec.name == "op_registered_turn_variant0" and spec.function == "op"
    graph = RGraph(
        "g", (Buffer("x", SHAPE, "float32", "input"), Buffer("y", SHAPE, "float32", "output")),
        (ROperator("turn", "op", (0,), (1,)),),
    )  # fmt: skip
    program = RProgram("g", graph, (spec,), ((Run(0, 0, 3),), (Run(0, 3, 5),)), 0, {}, 0)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    np.testing.assert_array_equal(build(program, [kernel], {}).run({"x": x})["y"], 2 * x[:, ::-1])


def test_tir_competes_with_what_is_constructed(register):
    register("twice", lambda f: True, lambda f, d: [TirKernel(negate, rtask_us=1e-3)], "cpu")
    mod = relax_module([SHAPE], relax.op.negative)
    module = tvm_rammer.compile(mod, target="cpu")
    assert [k.name.partition("_registered_")[2] for p in module.rprograms for k in p.kernels] == ["twice_variant0"]
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    np.testing.assert_array_equal(module(x), -x)


def test_a_kernel_that_leaves_elements_out_is_dropped(register):
    register("most", lambda f: True, lambda f, d: [TirKernel(negated(7), rtask_us=1e-3)], "cpu")
    module = tvm_rammer.compile(relax_module([SHAPE], relax.op.negative), target="cpu")
    assert module.compilation.dropped["leaves a part of its output out"] >= 1
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    np.testing.assert_array_equal(module(x), -x)


@pytest.mark.parametrize(
    ("kind", "written", "message"),
    [
        ("cuda", CudaSource("f", "", 8, 48), "8 rTasks of 48 threads; .* a multiple of 32, at most 256"),
        ("cuda", CudaSource("f", "__syncthreads();", 8, 64), r"use __barrier_sync_count\(1, 64\)"),
        ("cuda", TirKernel(negate), "is not one kernel"),
        ("cpu", CudaSource("f", "", 8, 64), "register it with kind='cuda'"),
    ],
)
def test_a_kernel_that_cannot_be_an_rtask_is_refused(register, kind, written, message):
    rule = register("bad", lambda f: True, lambda f, d: [written], kind)
    with pytest.raises(CodegenError, match=message):
        rule.tilings(function(device=H200 if kind == "cuda" else host_cpu()))


def test_parameters_must_be_the_operators(register):
    rule = register("bad", lambda f: True, lambda f, d: [TirKernel(negate)], "cpu")
    with pytest.raises(CodegenError, match="they must be the same"):
        rule.tilings(Function("op", fused([(4, 4)], relax.op.exp), host_cpu()))


@pytest.mark.parametrize(("name", "kind", "message"), [("a b", "cpu", "identifier"), ("a", "tpu", "'cpu' or 'cuda'")])
def test_a_bad_registration_is_refused(name, kind, message):
    with pytest.raises(CodegenError, match=message):
        register_rkernel(name, tirx.PrimFunc([], tirx.Evaluate(0)), lambda f, d: [], kind=kind)


def test_the_documented_example_runs(register):
    """The first block of the page is run as it stands, the second compiled and looked at."""
    page = (pathlib.Path(__file__).parents[2] / "docs" / "registering-kernels.md").read_text(encoding="utf-8")
    names = {}
    blocks = [block.partition("```")[0] for block in page.split("```python\n")[1:]]
    assert len(blocks) == 2
    mod = relax_module([SHAPE], lambda x: relax.op.nn.leakyrelu(x, 0.1))
    try:
        with tempfile.TemporaryDirectory() as folder:
            # TVM's script reads the source file of what it compiles.
            path = pathlib.Path(folder, "example.py")
            path.write_text("\n".join(blocks), encoding="utf-8")
            exec(compile(path.read_text(), str(path), "exec"), names)
        module = tvm_rammer.compile(mod, target="cpu")
        assert "my_leaky" in module.rprograms[0].kernels[0].name
        x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
        np.testing.assert_allclose(module(x), np.where(x > 0, x, np.float32(0.1) * x), rtol=1e-6)
        assert "my_leaky(" in tvm_rammer.compile(mod, target="cuda:h200").cuda_source()
    finally:
        for kind in ("cpu", "cuda"):
            unregister_rkernel("my_leaky", kind=kind)
