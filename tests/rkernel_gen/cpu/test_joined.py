"""Functions of concatenations: a loop for each array that is joined, and no copy in between."""

from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi
from tvm import tirx
from tvm.relax import op

from tests.functions import UNOPTIMISED, chosen, fused, random_arrays, run, run_kernels
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.branches import branch_conditions

IMAGES = [(2, 6, 5, 8), (2, 4, 5, 8), (2, 7, 5, 8)]

JOINED = {
    "relu": (IMAGES, lambda *x: op.nn.relu(op.concat(list(x), 1))),
    "swish": (IMAGES, lambda *x: op.nn.silu(op.concat(list(x), 1))),
    "scale and shift": (
        [*IMAGES, (1, 17, 1, 1)],
        lambda *x: op.nn.relu(op.add(op.multiply(op.concat(list(x[:3]), 1), x[3]), x[3])),
    ),
    "of a sum with another": ([*IMAGES, (2, 17, 5, 8)], lambda *x: op.add(op.concat(list(x[:3]), 1), x[3])),
    "along rows": (IMAGES[:1] * 2, lambda *x: op.exp(op.concat(list(x), 2))),
    "of images": (IMAGES[:1] * 3, lambda *x: op.nn.relu(op.concat(list(x), 0))),
}
APART = {
    "along the last axis": (IMAGES[:1] * 2, lambda *x: op.nn.relu(op.concat(list(x), 3))),
    "of two concatenations": (
        [*IMAGES[:2], *IMAGES[:2]],
        lambda *x: op.add(op.concat(list(x[:2]), 1), op.concat(list(x[2:]), 1)),
    ),
    # One more than is read in place. TVM's lowering, which runs it here, takes twice as long for each array more.
    "of very many": ([(1, 1, 4, 8)] * 17, lambda *x: op.nn.relu(op.concat(list(x), 1))),
    "an edge": (IMAGES[:1], lambda x: op.nn.relu(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)))),
}


def kernels_of(case):
    func = fused(*case)
    return func, chosen("op", func, replace(host_cpu(), units=2))


def statements(code, kind):
    found = []
    tvm_ffi.structural_walk(code.body, [(kind, lambda node: found.append(node))], order="pre")
    return found


@pytest.mark.parametrize("name", [*JOINED, *APART])
def test_every_tiling_is_right(name):
    func, kernels = kernels_of((JOINED | APART)[name])
    arrays = random_arrays(func)
    want = run(func, arrays, UNOPTIMISED)
    assert len(kernels) > 1
    for got in run_kernels(kernels, arrays):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", JOINED)
def test_arrays_are_read_where_they_are(name):
    """Neither a copy of what is joined nor a choice for each element: every store is of one array's elements."""
    for kernel in kernels_of(JOINED[name])[1]:
        assert not statements(kernel.func, tirx.AllocBuffer)
        stores = statements(kernel.func, tirx.BufferStore)
        assert len(stores) == (2 if name == "along rows" else 3)
        assert not any(branch_conditions(store.value) for store in stores)


@pytest.mark.parametrize("name", APART)
def test_others_stay_apart(name):
    for kernel in kernels_of(APART[name])[1]:
        assert len(statements(kernel.func, tirx.BufferStore)) > 1
