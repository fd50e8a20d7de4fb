"""Sums that several rows of the result repeat: a kernel whose rTasks would each write all rows is not made."""

import numpy as np
import pytest
from tvm import relax
from tvm.script import tirx as T

import tvm_rammer
from tests.functions import chosen, run_kernels
from tests.rkernel_gen.cuda.operators import check
from tvm_rammer.device import host_cpu, preset

SUMS, ROWS, COLUMNS, TERMS, RESULTS = 3, 32, 32, 64, 5


@T.prim_func(private=True, s_tir=True)
def repeated(
    x: T.Buffer((SUMS, ROWS, TERMS), "float32"),
    w: T.Buffer((SUMS, TERMS, COLUMNS), "float32"),
    y: T.Buffer((RESULTS, ROWS, COLUMNS), "float32"),
):
    s = T.sblock_alloc_buffer((SUMS, ROWS, COLUMNS), "float32")
    for b0, i0, j0, k0 in T.grid(SUMS, ROWS, COLUMNS, TERMS):
        with T.sblock("s"):
            b, i, j, k = T.axis.remap("SSSR", [b0, i0, j0, k0])
            with T.init():
                s[b, i, j] = T.float32(0)
            s[b, i, j] += x[b, i, k] * w[b, k, j]
    for b0, i0, j0 in T.grid(RESULTS, ROWS, COLUMNS):
        with T.sblock("y"):
            b, i, j = T.axis.remap("SSS", [b0, i0, j0])
            y[b, i, j] = s[b % SUMS, i, j]


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((SUMS, ROWS, TERMS)), rng.standard_normal((SUMS, TERMS, COLUMNS))
    return x.astype("float32"), w.astype("float32")


def expected(x, w):
    return np.matmul(x, w)[np.arange(RESULTS) % SUMS]


def test_each_rtask_writes_its_own_elements_on_a_cpu(arrays):
    kernels = chosen("repeated", repeated, host_cpu())
    out = np.zeros((RESULTS, ROWS, COLUMNS), "float32")
    assert kernels and "contraction" not in {kernel.rule for kernel in kernels}
    for got in run_kernels(kernels, [*arrays, out]):
        np.testing.assert_allclose(got, expected(*arrays), rtol=1e-4, atol=1e-4)


def test_each_rtask_writes_its_own_elements_on_a_gpu():
    kernels = chosen("repeated", repeated, preset("cuda:h200"))
    assert kernels
    check(repeated, kernels[:2])


def test_a_module_of_it_is_right_in_each_call(arrays):
    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType(a.shape, "float32")) for name, a in zip("xw", arrays, strict=True)]
    with builder.function("main", params):
        with builder.dataflow():
            out = relax.TensorType([RESULTS, ROWS, COLUMNS], "float32")
            y = builder.emit_output(relax.call_tir(builder.add_func(repeated, "repeated"), params, out_ty=out))
        builder.emit_func_output(y)
    module = tvm_rammer.compile(builder.get(), cache=False)
    for _ in range(5):
        np.testing.assert_allclose(module(*arrays), expected(*arrays), rtol=1e-4, atol=1e-4)
