"""Transpositions in registers: every order of axes, extents that no vector divides, and what is left to other rules."""

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from tests.functions import UNOPTIMISED, fused, random_arrays, run_kernels
from tests.marks import slow_but
from tests.rkernel_gen.cpu.test_window import DEVICES, HOST_BYTES
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu
from tvm_rammer.rkernel_gen.cpu.generic.rule import GenericRule
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


def channels_first(x):
    """Rows of pixels, as a product of a convolution's windows has them, as an image."""
    return op.permute_dims(op.reshape(x, (2, 6, 9, 21)), (0, 3, 1, 2))


def scaled(x, scale, bias, other):
    made = op.multiply(op.astype(channels_first(x), "float32"), scale)
    return op.add(op.nn.relu(op.add(made, bias)), other)


COMPUTED = {
    "a rectifier": ([(33, 47)], ["float32"], lambda x: op.nn.relu(op.permute_dims(x))),
    "something added": ([(8, 9), (9, 8)], ["float32"] * 2, lambda x, y: op.add(op.permute_dims(x), y)),
    "a function of a sigmoid": (
        [(3, 18, 16)],
        ["float32"],
        lambda x: op.permute_dims(op.multiply(x, op.sigmoid(x)), (0, 2, 1)),
    ),
    "two that are turned": (
        [(12, 19), (12, 19)],
        ["float32"] * 2,
        lambda x, y: op.subtract(op.permute_dims(x), op.permute_dims(y)),
    ),
    "sums of a convolution of bytes": (
        [(108, 21), (), (1, 21, 1, 1), (2, 21, 6, 9)],
        ["int32", "float32", "float32", "float32"],
        scaled,
    ),
    "the normalisation of an image": (
        [(1, 13, 10, 4), (1, 4, 1, 1)],
        ["uint8", "float32"],
        lambda x, mean: op.subtract(op.astype(op.permute_dims(x, (0, 3, 1, 2)), "float32"), mean),
    ),
    "the places that bytes are written to": (
        [(1, 20, 60)],
        ["int8"],
        lambda x: op.negative(op.permute_dims(x, (0, 2, 1))),
    ),
}
"""Shapes and types of what is read, and what is computed of it."""


@pytest.mark.parametrize("device", slow_but(lambda name: DEVICES[name].vector_bytes == HOST_BYTES, DEVICES))
@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_of_turned_elements_is_what_the_general_rule_computes(name, device):
    if DEVICES[device].vector_bytes > HOST_BYTES:
        pytest.skip("this processor has no such vectors")
    shapes, dtypes, build = COMPUTED[name]
    function = Function("op", fused(shapes, build, dtype=dtypes), DEVICES[device])
    rng = np.random.default_rng(1)
    arrays = [rng.integers(1, 99, [int(n) for n in p.shape]).astype(str(p.dtype)) for p in function.func.params]
    tilings, general = TranspositionRule().tilings(function), GenericRule()
    assert tilings
    kernels = [TranspositionRule().build(function, dict(t.choices)) for t in [*tilings[:2], tilings[-1]]]
    want, *results = run_kernels(
        [general.build(function, dict(general.tilings(function)[0].choices)), *kernels], arrays, UNOPTIMISED
    )
    for kernel, got in zip(kernels, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        written = footprints_of(kernel.func, kernel.spec.num_rtasks)[-1]
        assert covers(written, kernel.spec.num_rtasks, arrays[-1].shape)
        extract_cpu(kernel)


@pytest.mark.parametrize(
    ("shapes", "build"),
    [
        ([(8, 8)], lambda x: op.flip(x, 0)),
        ([(8, 9)], lambda x: op.nn.pad(op.permute_dims(x), (1, 1, 1, 1))),
        (
            [(8, 9, 10)] * 2,
            lambda x, y: op.add(op.permute_dims(x, (2, 1, 0)), op.reshape(op.permute_dims(y, (0, 2, 1)), (10, 9, 8))),
        ),
        ([(8, 9)], lambda x: op.power(op.permute_dims(x), relax.const(0.3))),
    ],
    ids=["backwards", "in a branch", "along two axes", "a function of the C library"],
)
def test_others_that_turn_elements_are_left_to_the_general_rule(shapes, build):
    assert not TranspositionRule().tilings(Function("op", fused(shapes, build), DEVICES["avx2"]))
