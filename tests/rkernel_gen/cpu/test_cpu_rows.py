"""Sums along rows, and functions of elements, in vectors: every tiling computes the same, on both widths of vectors."""

from dataclasses import replace

import numpy as np
import pytest
from tvm.relax import op

from tests.functions import fused, random_arrays, run
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu import cpu_kernels

WIDTHS = [b for b in (32, 64) if b <= host_cpu().vector_bytes]

FUNCTIONS = {
    "softmax": ([(6, 5, 48)], lambda x: op.nn.softmax(x)),
    "softmax of 17": ([(9, 17)], lambda x: op.nn.softmax(x)),
    "softmax along columns": ([(2, 12, 9)], lambda x: op.nn.softmax(x, axis=1)),
    "log softmax": ([(7, 30)], lambda x: op.nn.log_softmax(x)),
    "layer norm": ([(10, 96), (96,), (96,)], lambda x, g, b: op.nn.layer_norm(x, g, b, axes=-1)),
    "global mean 13x13": ([(2, 24, 13, 13)], lambda x: op.mean(x, (2, 3), keepdims=True)),
    "largest of a row": ([(8, 40)], lambda x: op.max(x, -1)),
    "sum of columns": ([(40, 12)], lambda x: op.sum(x, 0)),
    "sum of a scaled, shifted row": ([(8, 64), (64,)], lambda x, y: op.sum(op.add(op.multiply(x, x), y), -1)),
    "tanh of rows of 28": ([(3, 4, 28)], op.tanh),
    "sigmoid with broadcast": ([(6, 1, 20), (5, 1)], lambda x, y: op.sigmoid(op.add(x, y))),
}


@pytest.mark.parametrize("vector_bytes", WIDTHS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_tiling_is_right(name, vector_bytes):
    func = fused(*FUNCTIONS[name])
    arrays = random_arrays(func)
    want = run(func, arrays)
    kernels = cpu_kernels("op", func, replace(host_cpu(), vector_bytes=vector_bytes))
    assert len({k.spec.num_rtasks for k in kernels}) == len(kernels) >= 2
    for kernel in kernels:
        np.testing.assert_allclose(run(kernel.func, arrays), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("name", ["softmax", "global mean 13x13", "tanh of rows of 28"])
def test_the_inner_loop_is_a_vector(name):
    for kernel in cpu_kernels("op", fused(*FUNCTIONS[name]), host_cpu()):
        assert "T.vectorized" in kernel.func.script()
