"""Products of extents that no register tile divides: the last tiles are moved back."""

from collections import Counter

import numpy as np
import pytest
from tvm.relax import op
from tvm.s_tir.schedule import ScheduleError
from tvm.script import tirx as T

from tests.functions import UNOPTIMISED, best_of_each_size, fused, random_arrays, run, run_kernels
from tvm_rammer.device import host_cpu
from tvm_rammer.kernel import Pack
from tvm_rammer.rkernel_gen.analysis.anchor import find_anchor
from tvm_rammer.rkernel_gen.analysis.blocks import new_schedule
from tvm_rammer.rkernel_gen.cpu.contraction.cover import Cover, can_cover, covered
from tvm_rammer.rkernel_gen.cpu.contraction.rule import ContractionRule
from tvm_rammer.rkernel_gen.footprint.footprint import footprints_of
from tvm_rammer.rkernel_gen.tiling import Function

CPU = host_cpu()
SIMD = CPU.vector_bytes // 4

OPERATORS = {
    "scores of 197 tokens": (
        [(1, 3, 197, 16), (1, 3, 16, 197), ()],
        lambda q, k, scale: op.multiply(op.matmul(q, k), scale),
        (),
    ),
    "values of 197 tokens": ([(1, 3, 197, 197), (1, 3, 197, 32)], op.matmul, ()),
    "a layer of 197 rows": ([(197, 24), (24, 48), (48,)], lambda x, w, b: op.add(op.matmul(x, w), b), (1, 2)),
    "a layer with a bias and a residual": (
        [(1, 67, 24), (24, 67), (67,), (1, 67, 67)],
        lambda x, w, b, r: op.add(op.erf(op.add(op.matmul(x, w), b)), r),
        (1, 2),
    ),
    "a matrix that is no constant": ([(53, 24), (24, 61)], op.matmul, ()),
    "a matrix that is one, by itself": ([(53, 24), (24, 61)], op.matmul, (1,)),
    "a vector times many columns": ([(1, 40), (40, 1571), (1571,)], lambda x, w, b: op.add(op.matmul(x, w), b), (1, 2)),
    "some of the columns": (
        [(61, 24), (24, 64), (50,)],
        lambda x, w, b: op.add(op.strided_slice(op.matmul(x, w), axes=[1], begin=[0], end=[50]), b),
        (1, 2),
    ),
    "a mask that knows its place": (
        [(37, 24), (24, 37)],
        lambda q, k: op.tril(op.nn.relu(op.matmul(q, k))),
        (),
    ),
    "results that no vector stores": ([(1, 24, 1, 61), (37, 24, 1, 1)], op.nn.conv2d, (1,)),
}


def kernels(name):
    """The operator's function and arrays, and the rule's kernels for some of the numbers of rTasks."""
    shapes, build, constants = OPERATORS[name]
    func = fused(shapes, build)
    function = Function("op", func, CPU, frozenset(constants))
    tilings = best_of_each_size(ContractionRule().tilings(function))
    return func, random_arrays(func), [ContractionRule().build(function, dict(t.choices)) for t in tilings]


@T.prim_func(s_tir=True)
def _flattened(
    x: T.Buffer((7, 24), "float32"), w: T.Buffer((24, 35), "float32"), y: T.Buffer((7, 35), "float32")
) -> None:
    total = T.sblock_alloc_buffer((7, 35))
    flat = T.sblock_alloc_buffer((245,))
    for i, j, k in T.grid(7, 35, 24):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                total[vi, vj] = T.float32(0)
            total[vi, vj] = total[vi, vj] + x[vi, vk] * w[vk, vj]
    for i, j in T.grid(7, 35):
        with T.sblock("flat"):
            vi, vj = T.axis.remap("SS", [i, j])
            flat[vi * 35 + vj] = total[vi, vj]
    for i, j in T.grid(7, 35):
        with T.sblock("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = flat[vi * 35 + vj]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_result_is_computed(name):
    func, arrays, built = kernels(name)
    assert built and None not in built
    want = run(func, arrays, UNOPTIMISED)
    for kernel, got in zip(built, run_kernels(built, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max(), err_msg=kernel.spec.name)


@pytest.mark.parametrize("name", OPERATORS)
def test_no_two_rtasks_store_the_same_result(name):
    """What tiles compute twice is one rTask's, so that no two of them write to one place."""
    func, _, built = kernels(name)
    shape = tuple(int(n) for n in func.params[-1].shape)
    proven = 0
    for kernel in built:
        count = kernel.spec.num_rtasks
        box = footprints_of(kernel.func, count, skip=range(len(func.params) - 1))[-1]
        if box is None:
            continue
        proven += 1
        stored = Counter()
        for rtask in range(count):
            ranges = [range(max(0, a), min(b, n)) for (a, b), n in zip(box.box(rtask), box.view or shape, strict=True)]
            stored.update(np.ravel_multi_index(np.ix_(*ranges), box.view or shape).ravel().tolist())
        assert set(stored) == set(range(int(np.prod(shape)))), kernel.spec.name
        assert max(stored.values()) == 1, kernel.spec.name
    assert proven


@pytest.mark.parametrize("rows", [61, 197, 257])
def test_a_prime_number_of_rows_still_fills_the_registers(rows):
    func = fused([(2, rows, 64), (2, 64, rows)], op.matmul)
    tilings = ContractionRule().tilings(Function("op", func, CPU, frozenset()))
    best = dict(min(tilings, key=lambda t: t.rtask_us * t.num_rtasks).choices)
    assert best["simd"] == SIMD
    assert best["vectors"] * best["pixels"] >= 8
    even = fused([(2, 64, 64), (2, 64, 64)], op.matmul)
    each = [
        min(t.rtask_us * t.num_rtasks for t in some) / n**2
        for some, n in ((tilings, rows), (ContractionRule().tilings(Function("op", even, CPU, frozenset())), 64))
    ]
    assert each[0] < 1.6 * each[1]  # time of a result, beside that of extents that are divided


def test_tiles_that_divide_an_axis_stay_where_they_are():
    func = fused([(2, 64, 64), (2, 64, 128)], op.matmul)
    function = Function("op", func, CPU, frozenset())
    tilings = ContractionRule().tilings(function)
    assert all(64 % dict(t.choices)["pixels"] == 0 for t in tilings)
    kernel = ContractionRule().build(function, dict(tilings[0].choices))
    assert kernel.trace is not None


def test_stock_tvm_gets_no_schedule_that_it_cannot_repeat():
    _, _, built = kernels("a layer of 197 rows")
    uneven = [k for k in built if "pixels1_" not in k.spec.name]
    assert uneven and all(k.trace is None for k in uneven)


def test_an_axis_that_becomes_a_part_of_an_index_is_not_covered():
    """Its elements could not be numbered anew: the buffer between holds rows and columns in one dimension."""
    sch = new_schedule(_flattened)
    anchor = find_anchor(sch)
    block = sch.get(anchor.block)
    assert not can_cover(_flattened, block, anchor.vector)
    with pytest.raises(ScheduleError, match="more than a dimension"):
        covered(_flattened, block, {anchor.vector: Cover(16, 48)}, None)


def test_a_constant_is_packed_as_the_tiles_cover_it():
    pack = Pack((3, 8), (3, 2, 4), (1, 0, 2), blocks=(1, 4))
    packed = pack.apply(np.arange(21).reshape(3, 7))
    assert packed.shape == pack.shape == (2, 3, 4)
    np.testing.assert_array_equal(packed[0], [[0, 1, 2, 3], [7, 8, 9, 10], [14, 15, 16, 17]])
    np.testing.assert_array_equal(packed[1], [[3, 4, 5, 6], [10, 11, 12, 13], [17, 18, 19, 20]])
