"""How the CUDA rules describe functions as problems, and what the cost model predicts for tiles."""

import random
from dataclasses import replace

import pytest
from tvm.script import tirx as T

from tests.emulation.programs import H200
from tests.rkernel_gen.cuda.operators import check, function_of
from tvm_rammer.device import preset
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.cuda.cost import Cost, rtask_us
from tvm_rammer.rkernel_gen.cuda.elementwise import ELEMENTWISE_RULE, find_elementwise
from tvm_rammer.rkernel_gen.cuda.product.gemm import GEMM_RULE, GemmTile
from tvm_rammer.rkernel_gen.cuda.product.mma import find_matrix, find_tf32
from tvm_rammer.rkernel_gen.cuda.product.problem import find_gemm
from tvm_rammer.rkernel_gen.cuda.product.steps import Covering
from tvm_rammer.rkernel_gen.cuda.reduction import find_reduction
from tvm_rammer.rkernel_gen.cuda.resources import source_of
from tvm_rammer.rkernel_gen.cuda.rowwise import find_rowwise
from tvm_rammer.rkernel_gen.cuda.window.rule import (
    WINDOW_RULE,
    WindowReductionTile,
    find_window_reduction,
    window_cost,
)
from tvm_rammer.rkernel_gen.tiling import Function

A_MICROSECOND = Cost(num_rtasks=132, threads=256, flops=4e5, nbytes=4e3, shared_bytes=1e4, outputs=16)


def describe(find, name, device=H200):
    return find(Function(name, function_of(name), device))


@pytest.mark.parametrize(
    ("name", "extents", "grouped"),
    [
        ("conv", (1, 169, 20, 72), False),
        ("conv_grouped", (4, 81, 8, 4), True),
        ("conv_depthwise_multiplier", (6, 49, 2, 25), True),
        ("conv1d_transpose", (1, 40, 12, 32), False),
        ("matmul_batched", (3, 20, 40, 24), False),
    ],
)
def test_products_are_found_in_convolutions(name, extents, grouped):
    gemm = describe(find_gemm, name)
    assert (gemm.batch, gemm.i, gemm.j, gemm.k) == extents and gemm.grouped == grouped


@pytest.mark.parametrize("name", ["matmul_row", "conv_depthwise", "max_pool", "softmax", "split", "max_of_columns"])
def test_other_functions_are_no_products(name):
    assert describe(find_gemm, name) is None


@T.prim_func(private=True, s_tir=True)
def sums_of_blocks(x: T.Buffer((70, 5), "float32"), w: T.Buffer((70, 5), "float32"), y: T.Buffer((70, 5), "float32")):
    for i0, j0, r0 in T.grid(70, 5, 32):
        with T.sblock("y"):
            i, j, r = T.axis.remap("SSR", [i0, j0, r0])
            with T.init():
                y[i, j] = T.float32(0)
            y[i, j] += T.if_then_else(i // 32 * 32 + r <= i, x[i // 32 * 32 + r, j], T.float32(0))


@T.prim_func(private=True, s_tir=True)
def products_of_blocks(
    x: T.Buffer((96, 5), "float32"), w: T.Buffer((70, 32), "float32"), y: T.Buffer((70, 5), "float32")
):
    for i0, j0, r0 in T.grid(70, 5, 32):
        with T.sblock("y"):
            i, j, r = T.axis.remap("SSR", [i0, j0, r0])
            with T.init():
                y[i, j] = T.float32(0)
            y[i, j] += x[i // 32 * 32 + r, j] * w[i, r]


@pytest.mark.parametrize("func", [sums_of_blocks, products_of_blocks], ids=["sums", "products"])
def test_what_is_divided_need_not_be_groups(func):
    """The last block is not whole, so no axis of blocks can be split off."""
    kernels = choose(Function("blocks", func, H200))
    assert kernels
    check(func, kernels)


def test_tensor_cores_need_half_precision_and_a_device_that_has_them():
    assert describe(find_matrix, "half_matmul").gemm.dtypes == ("float16", "float16", "float32")
    assert describe(find_matrix, "half_matmul_wide").gemm.dtypes == ("float16", "float16", "float32")
    assert describe(find_matrix, "matmul") is None
    assert describe(find_matrix, "half_matmul", replace(H200, arch="sm_75")) is None
    assert describe(find_matrix, "half_matmul", replace(H200, arch="sm_100")) is not None


def test_tensor_cores_take_single_precision_only_where_the_device_says_so():
    may = replace(H200, tf32=True)
    assert describe(find_tf32, "matmul", may).gemm.dtypes == ("float32",) * 3
    assert describe(find_tf32, "matmul") is None
    assert describe(find_tf32, "half_matmul", may) is None
    assert describe(find_tf32, "matmul", replace(may, arch="sm_75")) is None
    assert describe(find_matrix, "matmul", may) is None


def test_windows_are_described():
    window = describe(find_window_reduction, "conv_depthwise_multiplier")
    assert (window.channels, window.filters, window.rows, window.columns) == (6, 2, 7, 7)
    assert (window.terms, window.depth, window.stride_rows, window.receptive_columns) == (25, 1, 2, 5)
    assert window.span_rows(3) == 9 and window.weighted
    dilated = describe(find_window_reduction, "conv_depthwise_dilated")
    assert (dilated.receptive_rows, dilated.taps_per_row, dilated.terms) == (5, 3, 9)
    pool = describe(find_window_reduction, "max_pool")
    assert not pool.weighted and pool.filters == 1 and pool.span_columns(8) == 17
    line = describe(find_window_reduction, "conv1d_depthwise")
    assert line.row_axis == -1 and (line.rows, line.columns, line.channels) == (1, 40, 16)


@pytest.mark.parametrize("name", ["matmul", "softmax", "global_pool", "elementwise", "conv_grouped"])
def test_other_functions_have_no_windows(name):
    assert describe(find_window_reduction, name) is None


def test_reductions_and_rows_are_described():
    reduction = describe(find_reduction, "global_pool")
    assert (reduction.results, reduction.terms, reduction.result_fast) == (150, 49, False)
    assert describe(find_reduction, "matmul_row").result_fast and describe(find_reduction, "max_of_columns").result_fast
    assert describe(find_reduction, "matmul") is None and describe(find_reduction, "instance_norm") is None
    rows = describe(find_rowwise, "instance_norm")
    assert (rows.rows, rows.columns) == (6, 81)
    single = describe(find_rowwise, "variance")
    assert (single.rows, single.columns, single.reductions, single.terms) == (12, 1, 2, 81)
    assert describe(find_rowwise, "elementwise") is None and describe(find_rowwise, "max_pool") is None


@pytest.mark.parametrize(("rule", "name"), [(WINDOW_RULE, "conv_depthwise"), (GEMM_RULE, "conv")])
def test_shared_memory_is_what_the_tile_says(rule, name):
    function = Function(name, function_of(name), H200)
    for tiling in random.Random(0).sample(rule.tilings(function), 8):
        tile = rule.tile(**dict(tiling.choices))
        kernel = rule.build(function, dict(tiling.choices))
        if isinstance(tile, GemmTile):
            unused = 0 if Covering(9, 8, tile.k).count > 1 else (tile.buffers - 1) * tile.step_elements
            least = 4 * max(
                tile.buffers * tile.step_elements - unused, tile.slices * tile.team_sums * (tile.slices > 1)
            )
            assert abs(kernel.spec.shared_bytes - least) <= 256 and kernel.spec.shared_bytes <= tile.shared_bytes + 256
        else:
            image = tile.channels * (tile.rows + 2) * (tile.columns + 2)
            assert abs(kernel.spec.shared_bytes - 4 * (image + 9 * tile.channels)) <= 256


def test_each_part_of_the_work_costs_time():
    device = preset("cuda:h200")
    base = rtask_us(device, A_MICROSECOND)
    for change in ({"flops": 8e6}, {"nbytes": 8e5}, {"shared_bytes": 8e6}, {"steps": 9.0}):
        assert rtask_us(device, replace(A_MICROSECOND, **change)) > 1.5 * base
    compute = replace(A_MICROSECOND, flops=8e6)
    assert rtask_us(device, replace(compute, outputs=1)) > rtask_us(device, compute)
    assert rtask_us(device, replace(compute, gain=8.0)) < rtask_us(device, compute) / 2


def test_few_rtasks_have_more_bandwidth_each_up_to_the_units_port():
    times = [rtask_us(H200, Cost(n, 256, 1.0, 1e6)) for n in (132, 66, 33, 22, 1)]
    assert times[0] > times[1] > times[2] == times[3] == times[4]


def test_bank_conflicts_cost_shared_bandwidth():
    window = describe(find_window_reduction, "conv_depthwise")
    odd, even = (window_cost(window, WindowReductionTile(8, 7, 14, 1, 1, pixels)).shared_bytes for pixels in (7, 2))
    assert even > odd / 7 * 2


def test_choices_that_do_not_fit_make_no_kernel():
    function = Function("conv_depthwise", function_of("conv_depthwise"), H200)
    box = {"channels": 5, "rows": 7, "columns": 14, "thread_filters": 1, "thread_rows": 1, "thread_columns": 7}
    assert WINDOW_RULE.build(function, box) is None
    assert WINDOW_RULE.build(function, box | {"channels": 8}) is not None
    assert WINDOW_RULE.build(function, {"i": 16, "j": 16}) is None  # from a log that another version wrote
    assert GEMM_RULE.build(function, {"i": 16, "j": 16, "k": 8, "mi": 2, "mj": 2}) is None


@pytest.mark.parametrize(
    ("name", "vectorizable"),
    [("vectors", True), ("broadcast", True), ("elementwise", False), ("transpose", False), ("resize", False)],
)
def test_only_contiguous_rows_are_vectorizable(name, vectorizable):
    assert describe(find_elementwise, name).vectorizable is vectorizable


def test_a_vector_is_one_load():
    function = Function("vectors", function_of("vectors"), H200)
    kernels = [
        ELEMENTWISE_RULE.build(function, {"vectors_per_thread": 2, "threads": 32, "vector_width": width})
        for width in (1, 4)
    ]
    assert [("*(float4*)" in source_of([kernel], H200)) for kernel in kernels] == [False, True]
    assert kernels[0].spec.num_rtasks > kernels[1].spec.num_rtasks
