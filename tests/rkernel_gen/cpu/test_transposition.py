"""Transpositions in registers: every order of axes, extents that no vector divides, and what is left to other rules."""

import numpy as np
import pytest
from tvm.relax import op

from tests.functions import UNOPTIMISED, fused, random_arrays, run_kernels
from tests.marks import slow_but
from tests.rkernel_gen.cpu.test_window import DEVICES, HOST_BYTES
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu
from tvm_rammer.rkernel_gen.cpu.transposition.rule import TranspositionRule
from tvm_rammer.rkernel_gen.footprint.footprint import covers, footprints_of
from tvm_rammer.rkernel_gen.tiling import Function

TRANSPOSED = {
    "a matrix": ((33, 47), (1, 0)),
    "a small matrix": ((4, 5), (1, 0)),
    "channels last": ((1, 19, 6, 7), (0, 2, 3, 1)),
    "channels first": ((2, 5, 7, 20), (0, 3, 1, 2)),
    "a batch of matrices": ((3, 18, 16), (0, 2, 1)),
    "the outermost axis becomes the innermost": ((17, 3, 5, 4), (1, 2, 3, 0)),
    "all axes turned around": ((4, 3, 5, 21), (3, 2, 1, 0)),
}
LEFT = {
    "the innermost axis stays": ((6, 8, 16), (1, 0, 2)),
    "too short an axis": ((3, 50), (1, 0)),
}


def transposed(shape, order, dtype="float32"):
    return fused([shape], lambda x: op.permute_dims(x, order), dtype=dtype)


@pytest.mark.parametrize("device", slow_but(lambda name: DEVICES[name].vector_bytes == HOST_BYTES, DEVICES))
@pytest.mark.parametrize("name", TRANSPOSED)
def test_every_number_of_rtasks_is_right_and_writes_all(name, device):
    if DEVICES[device].vector_bytes > HOST_BYTES:
        pytest.skip("this processor has no such vectors")
    func = transposed(*TRANSPOSED[name])
    arrays, function = random_arrays(func), Function("op", func, DEVICES[device])
    tilings = TranspositionRule().tilings(function)
    assert tilings
    kernels = [TranspositionRule().build(function, dict(t.choices)) for t in [*tilings[:2], *tilings[-2:]]]
    for kernel, got in zip(kernels, run_kernels(kernels, arrays, UNOPTIMISED), strict=True):
        np.testing.assert_array_equal(got, arrays[0].transpose(TRANSPOSED[name][1]))
        written = footprints_of(kernel.func, kernel.spec.num_rtasks)[-1]
        assert covers(written, kernel.spec.num_rtasks, arrays[-1].shape)
        extract_cpu(kernel)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_other_elements_are_turned_in_registers_too(name, dtype):
    shape, order = TRANSPOSED[name]
    data = np.random.default_rng(0).integers(0, 127, shape).astype(dtype)
    function = Function("op", transposed(shape, order, dtype), DEVICES["avx2"])
    kernels = [TranspositionRule().build(function, dict(t.choices)) for t in TranspositionRule().tilings(function)[:2]]
    arrays = [data, np.zeros([shape[a] for a in order], dtype)]
    assert kernels
    for got in run_kernels(kernels, arrays, UNOPTIMISED):
        np.testing.assert_array_equal(got, data.transpose(order))


@pytest.mark.parametrize("name", LEFT)
def test_others_are_left_to_the_general_rule(name):
    assert not TranspositionRule().tilings(Function("op", transposed(*LEFT[name]), DEVICES["avx2"]))


@pytest.mark.parametrize(
    ("shapes", "build"),
    [
        ([(8, 9)], lambda x: op.nn.relu(op.permute_dims(x))),
        ([(8, 9), (9, 8)], lambda x, y: op.add(op.permute_dims(x), y)),
        ([(8, 8)], lambda x: op.flip(x, 0)),
    ],
)
def test_what_is_more_than_a_transposition_is_left_to_the_general_rule(shapes, build):
    assert not TranspositionRule().tilings(Function("op", fused(shapes, build), DEVICES["avx2"]))
