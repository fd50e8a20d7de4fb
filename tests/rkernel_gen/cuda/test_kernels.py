"""Every kind of operator has tilings that are one kernel each, within an rTask's limits, and compute it."""

import random

import numpy as np
import pytest
import tvm
from tvm import s_tir

from tests.emulation.programs import H200
from tests.functions import chosen, run
from tests.marks import slow_but
from tests.rkernel_gen.cuda.operators import HALF, OPERATORS, check, emulated, function_of
from tvm_rammer.device import preset
from tvm_rammer.rkernel_gen.cuda.product.gemm import GEMM_RULE
from tvm_rammer.rkernel_gen.cuda.product.gemv.rule import GEMV_RULE
from tvm_rammer.rkernel_gen.cuda.product.mma import MMA_RULE, TF32_RULE
from tvm_rammer.rkernel_gen.cuda.reduction import REDUCTION_RULE
from tvm_rammer.rkernel_gen.cuda.rule import name_for_c
from tvm_rammer.rkernel_gen.cuda.rules import CUDA_RULES
from tvm_rammer.rkernel_gen.tiling import Function

RULES = {
    "conv": {"gemm", "window", "elementwise"},
    "conv_groups_of_4": {"gemm", "window", "reduction", "elementwise"},
    "conv_depthwise": {"window", "elementwise"},
    "conv1d_depthwise": {"window", "elementwise"},
    "conv2d_transpose": {"gemm", "window", "reduction", "elementwise"},
    "matmul_row": {"reduction", "elementwise"},
    "matmul_column": {"reduction", "elementwise"},
    "max_pool": {"window", "elementwise"},
    "global_pool": {"reduction", "elementwise"},
    "number_without_axes": {"elementwise"},
    "sum_of_rows": {"reduction", "elementwise"},
    "softmax_of_channels": {"rowwise", "elementwise"},
    "instance_norm": {"rowwise", "elementwise"},
    "split_unlike": {"elementwise"},
    "half_matmul": {"mma", "gemm", "elementwise"},
    "half_conv_groups": {"mma", "gemm", "window", "reduction", "elementwise"},
    "half_max_pool": {"window", "elementwise"},
}
"""Which rules apply to some of the operators."""


def some_kernels(name, func, count=3):
    """For each rule that applies, `count` of its tilings with their kernels."""
    function = Function(name, func, H200)
    made = []
    for rule in CUDA_RULES:
        space = rule.tilings(function)
        chosen = random.Random(name).sample(space, min(count, len(space)))
        made += [(tiling, rule.build(function, dict(tiling.choices))) for tiling in chosen]
    return made


@pytest.mark.parametrize("name", slow_but(list(RULES)[::2], OPERATORS))
def test_every_tiling_of_an_operator_computes_it(name):
    check(*kernels_of(name))


@pytest.mark.parametrize("name", slow_but(["half_max_pool"], HALF))
def test_every_tiling_of_an_operator_computes_it_in_half_precision(name):
    # The sums of fp16 functions are fp16 too, and are added up in another order.
    check(*kernels_of(name), rtol=2e-2, atol=1e-1)


@pytest.mark.parametrize("name", ["conv", "conv_strided", "matmul", "half_conv"])
def test_constant_weights_are_packed(name):
    func = function_of(name)
    space = GEMM_RULE.tilings(Function(name, func, H200))
    kernels = []
    for tiling in random.Random(name).sample(space, 3):
        kernel = GEMM_RULE.build(Function(name, func, H200, frozenset({1})), dict(tiling.choices))
        assert kernel.packs[1].shape[-1] % tiling["j"] == 0 and kernel.func.params[1].shape[-1] % tiling["j"] == 0
        kernels.append(kernel)
    check(func, kernels, *((2e-2, 1e-1) if name in HALF else ()), constants={1})


SMALL_TEAMS = [(8, 8, 64, 4, 4, 16), (8, 32, 256, 4, 4, 16), (16, 8, 32, 2, 4, 8), (16, 32, 64, 4, 8, 8)]
"""Tiles with teams of 4, 16 and 16 threads, with the tiles of two steps or of one in shared memory."""


@pytest.mark.parametrize("name", ["conv", "matmul"])
def test_a_team_may_be_a_part_of_a_warp(name):
    func = function_of(name)
    function = Function(name, func, H200, frozenset({1}))
    choices = [dict(zip(("i", "j", "k", "mi", "mj", "slices"), tile, strict=True)) for tile in SMALL_TEAMS]
    kernels = [GEMM_RULE.build(function, chosen) for chosen in choices]
    assert {k.spec.threads for k in kernels} == {64, 128, 256}
    check(func, kernels, constants={1})


@pytest.mark.parametrize("name", ["matmul_row", "matmul_few_rows", "conv_of_a_pixel"])
def test_every_tiling_of_a_product_with_few_rows_computes_it(name):
    func = function_of(name)
    function = Function(name, func, H200, frozenset({1}))
    space = GEMV_RULE.tilings(function)
    chosen = dict.fromkeys([space[0], space[-1], *random.Random(name).sample(space, 3)])
    kernels = [GEMV_RULE.build(function, dict(tiling.choices)) for tiling in chosen]
    assert [kernel.packs[1].shape[-1] for kernel in kernels] == [tiling["columns"] for tiling in chosen]
    check(func, kernels, constants={1})


@pytest.mark.parametrize("name", ["matmul_row", "matmul_few_rows"])
def test_weights_of_run_time_are_left_to_the_other_rules(name):
    assert not GEMV_RULE.tilings(Function(name, function_of(name), H200))


def test_an_infinite_element_stays_infinite_beside_padded_weights():
    func = function_of("matmul_few_rows")
    function = Function("matmul_few_rows", func, H200, frozenset({1}))
    kernel = GEMV_RULE.build(function, {"columns": 4, "teams": 64})
    rows, weights = np.ones((4, 120), "float32"), np.ones((120, 100), "float32")
    rows[1, -1] = np.inf
    ((got,),) = emulated(func, [kernel], [rows, weights], {1})
    np.testing.assert_array_equal(got, rows @ weights)


MATRIX_TILES = [
    (16, 64, 32, 16, 32, 1), (64, 32, 16, 32, 16, 1), (32, 16, 64, 16, 16, 1),
    (16, 16, 64, 16, 16, 4), (32, 32, 32, 16, 16, 2), (16, 32, 128, 16, 32, 8),
]  # fmt: skip
"""Tiles of two warps or more, of one team or several, with a step for a position of the window, or several positions in
a step.
"""


@pytest.mark.parametrize(("name", "constants"), [("half_conv", {1}), ("half_matmul", {1}), ("half_matmul", ())])
def test_products_of_half_precision_are_computed_by_matrix_instructions(name, constants):
    func = function_of(name)
    function = Function(name, func, H200, frozenset(constants))
    choices = [dict(zip(("i", "j", "k", "mi", "mj", "slices"), tile, strict=True)) for tile in MATRIX_TILES]
    check(func, [MMA_RULE.build(function, chosen) for chosen in choices], 1e-2, 1e-1, constants)


@pytest.mark.parametrize(
    ("name", "constants"), [("half_conv", {1}), ("half_matmul", {1}), ("half_matmul", ()), ("half_matmul_wide", ())]
)
def test_products_of_bfloat16_are_computed_by_matrix_instructions(name, constants):
    func, exact = function_of(name, "bfloat16"), function_of(name, "float32")
    function = Function(name, func, H200, frozenset(constants))
    choices = [dict(zip(("i", "j", "k", "mi", "mj", "slices"), tile, strict=True)) for tile in MATRIX_TILES]
    kernels = [MMA_RULE.build(function, chosen) for chosen in choices]
    assert all("rammer_mma_bf16" in kernel.func.script() for kernel in kernels)
    rng = np.random.default_rng(0)
    shapes = [[int(n) for n in p.shape] for p in func.params]
    arrays = [rng.standard_normal(shape).astype("bfloat16") for shape in shapes[:-1]]
    want = run(exact, [*(a.astype("float32") for a in arrays), np.zeros(shapes[-1], "float32")])
    # In bfloat16 sums up to 32 are rounded before anything is added to them.
    rtol, atol = (2**-7, 32 * 2**-8) if str(func.params[-1].dtype) == "bfloat16" else (1e-5, 1e-4)
    for (got,) in emulated(func, kernels, arrays, constants):
        np.testing.assert_allclose(got.astype("float32"), want, rtol, atol)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("conv", {1}),
        ("conv_strided", {1}),
        ("matmul", {1}),
        ("matmul", ()),
        ("half_matmul_wide", ()),
        ("conv_groups_of_4", {1}),
    ],
)
def test_products_of_single_precision_are_those_of_tf32_where_the_device_says_so(name, constants):
    func = function_of(name, "float32")
    function = Function(name, func, preset("cuda:h200+tf32"), frozenset(constants))
    space = TF32_RULE.tilings(function)
    assert space and not TF32_RULE.tilings(Function(name, func, H200, frozenset(constants)))
    sampled = [dict(tiling.choices) for tiling in random.Random(name).sample(space, min(3, len(space)))]
    kernels = [TF32_RULE.build(function, chosen) for chosen in sampled]
    assert all("rammer_mma_tf32" in kernel.func.script() for kernel in kernels)
    rng = np.random.default_rng(0)
    shapes = [[int(n) for n in p.shape] for p in func.params]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes[:-1]]
    want = run(func, [*map(tf32, arrays), np.zeros(shapes[-1], "float32")])
    # Sums of exact products: nothing but their order differs, if both operands are rounded to the nearest number.
    for (got,) in emulated(func, kernels, arrays, constants):
        np.testing.assert_allclose(got, want, 1e-5, 2e-5)


def test_tf32_rounds_to_the_nearest_number_and_keeps_what_is_none():
    func = function_of("matmul")
    function = Function("matmul", func, preset("cuda:h200+tf32"), frozenset())
    kernel = TF32_RULE.build(function, {"i": 16, "j": 16, "k": 16, "mi": 16, "mj": 16, "slices": 1})
    a, b = (np.zeros([int(n) for n in p.shape], "float32") for p in func.params[:2])
    ulp = np.float32(2**-10)
    numbers = [1 + ulp / 2, 1 + ulp * 0.49, -1 - ulp / 2, np.finfo("float32").max, np.inf, -np.inf, np.nan, 2**-130]
    a[: len(numbers), 0], b[0, 0] = numbers, 1
    ((got,),) = emulated(func, [kernel], [a, b], ())
    want = [1 + ulp, 1, -1 - ulp, np.inf, np.inf, -np.inf, np.nan, 2**-130]
    np.testing.assert_array_equal(got[: len(numbers), 0], np.array(want, "float32"))


def tf32(array):
    """The nearest numbers with ten bits of mantissa; those halfway between two do not occur at random."""
    mantissa, exponent = np.frexp(array.astype("float64"))
    return np.ldexp(np.round(mantissa * 2**11) / 2**11, exponent).astype("float32")


def kernels_of(name):
    """Some kernels of each rule, checked against their tilings."""
    func = function_of(name)
    made = some_kernels(name, func)
    assert len(made) >= 3
    for tiling, kernel in made:
        assert kernel is not None, tiling.label
        assert kernel.spec.name == f"{name}_{tiling.label}" and kernel.spec.name.isidentifier()
        assert kernel.rule == tiling.rule and kernel.spec.function == name and not kernel.spec.measured
        assert kernel.spec.num_rtasks == tiling.num_rtasks and kernel.spec.rtask_us == tiling.rtask_us > 0
        assert kernel.spec.threads % 32 == 0 and kernel.spec.threads <= 256
        assert kernel.spec.shared_bytes <= 48 * 1024
    return func, [kernel for _, kernel in made]


@pytest.mark.parametrize("name", RULES)
def test_rules_apply_to_their_kinds_of_functions(name):
    function = Function(name, function_of(name), H200)
    assert {rule.name for rule in CUDA_RULES if rule.tilings(function)} == RULES[name]


def test_tilings_are_distinct_and_the_same_every_time():
    spaces = [[t for r in CUDA_RULES for t in r.tilings(Function("conv", function_of("conv"), H200))] for _ in "ab"]
    assert spaces[0] == spaces[1] and len({t.label for t in spaces[0]}) == len(spaces[0])


@pytest.mark.parametrize(
    "name", ["conv", "conv_groups_of_4", "conv_depthwise", "matmul_row", "softmax", "transpose", "half_conv"]
)
def test_a_trace_repeats_the_schedule_on_the_function_as_it_was(name):
    func = function_of(name)
    for tiling, kernel in some_kernels(name, func, 2):
        if kernel.trace is None:
            assert tiling.rule in ("gemm", "mma")  # their code is written loop by loop
            continue
        for original in (func, name_for_c(func)):
            schedule = s_tir.Schedule(original)
            kernel.trace.apply_to_schedule(schedule, remove_postproc=False)
            tvm.ir.assert_structural_equal(name_for_c(schedule.mod["main"]), name_for_c(kernel.func), True)


def test_a_few_kernels_of_a_function_differ_in_their_rtasks():
    tiles = [k.spec.num_rtasks for k in chosen("matmul", function_of("matmul"), H200)]
    assert len(tiles) >= 4 and tiles == sorted(set(tiles))


def test_names_become_c_identifiers():
    assert all(p.name.isidentifier() for p in name_for_c(function_of("split")).params)


@pytest.mark.parametrize("results", [1, 8, 32])
def test_a_sum_without_an_epilogue_is_not_stored_past_the_output(results):
    function = Function("sum_of_rows", function_of("sum_of_rows"), H200)
    kernel = REDUCTION_RULE.build(function, {"results": results, "threads_per_sum": max(4, 64 // results)})
    check(function.func, [kernel])


def test_a_single_result_has_the_threads_of_one():
    function = Function("dot_product", function_of("dot_product"), H200)
    assert {tiling["results"] for tiling in REDUCTION_RULE.tilings(function)} == {1}
    assert REDUCTION_RULE.build(function, {"results": 2, "threads_per_sum": 32}) is None
    check(function.func, [REDUCTION_RULE.build(function, {"results": 1, "threads_per_sum": 64})])
