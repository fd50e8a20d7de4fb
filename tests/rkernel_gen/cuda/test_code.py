"""What nvcc makes of the kernels' loads, and the code of products, step by step."""

import re
import subprocess

import numpy as np
import pytest
import tvm

from tests.emulation.programs import H200
from tests.golden import check_golden
from tests.marks import needs_nvcc
from tests.rkernel_gen.cuda.operators import function_of
from tvm_rammer.device import preset
from tvm_rammer.kernel import Pack
from tvm_rammer.nvcc.compile import FLAGS
from tvm_rammer.rkernel_gen.cuda.elementwise import ELEMENTWISE_RULE
from tvm_rammer.rkernel_gen.cuda.product.gemm import GEMM_RULE
from tvm_rammer.rkernel_gen.cuda.product.gemv.rule import GEMV_RULE
from tvm_rammer.rkernel_gen.cuda.product.mma import MMA_RULE, TF32_RULE
from tvm_rammer.rkernel_gen.cuda.product.parts import read_product
from tvm_rammer.rkernel_gen.cuda.product.steps import Covering
from tvm_rammer.rkernel_gen.cuda.reduction import REDUCTION_RULE
from tvm_rammer.rkernel_gen.cuda.resources import source_of
from tvm_rammer.rkernel_gen.cuda.threads import number
from tvm_rammer.rkernel_gen.cuda.window.rule import WINDOW_RULE
from tvm_rammer.rkernel_gen.tiling import Function

TILINGS = {
    "conv": (GEMM_RULE, {"i": 32, "j": 16, "k": 8, "mi": 2, "mj": 4, "slices": 1}),
    "conv_strided": (GEMM_RULE, {"i": 32, "j": 16, "k": 32, "mi": 2, "mj": 4, "slices": 2}),
    "conv_depthwise": (
        WINDOW_RULE,
        {"channels": 8, "rows": 7, "columns": 14, "thread_filters": 1, "thread_rows": 1, "thread_columns": 7},
    ),
    "matmul_row": (REDUCTION_RULE, {"results": 8, "threads_per_sum": 32}),
    "conv_of_a_pixel": (GEMV_RULE, {"columns": 8, "teams": 32}),
    "half_conv": (MMA_RULE, {"i": 32, "j": 32, "k": 32, "mi": 32, "mj": 16, "slices": 1}),
}


def text_of(name, dtype=None):
    """The CUDA text of a kernel of an operator."""
    rule, choices = TILINGS[name]
    return source_of([rule.build(Function(name, function_of(name, dtype), H200, frozenset({1})), choices)], H200)


@pytest.mark.parametrize("name", TILINGS)
def test_the_text_of_a_kernel_is_as_it_was(name):
    check_golden(f"{name}.cu", text_of(name))


def ptx_of(name, folder, dtype=None):
    """The instructions of a kernel of an operator."""
    return instructions_of(text_of(name, dtype), folder)


def instructions_of(text, folder):
    """What nvcc makes of a text, in PTX."""
    source = folder / "kernel.cu"
    source.write_text(text, encoding="utf-8")
    flags = [f for f in FLAGS if f != "-cubin" and not f.startswith("--ptxas-options")]
    command = ["nvcc", "-ptx", *flags, "-arch=sm_90", str(source), "-o", str(folder / "kernel.ptx")]
    subprocess.run(command, check=True, timeout=300)
    text = (folder / "kernel.ptx").read_text(encoding="utf-8")
    rows = (re.sub(r"^@!?%p\d+ ", "", line.strip()) for line in text.splitlines())
    return [row for row in rows if row.endswith(";")]


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "fewest"),
    [("conv", 6), ("conv_strided", 9), ("conv_depthwise", 5), ("matmul_row", 3), ("conv_of_a_pixel", 7)],
)
def test_no_branch_is_between_the_loads_of_a_fetch(name, fewest, tmp_path):
    runs, run = [], 0
    for instruction in ptx_of(name, tmp_path):
        if instruction.startswith("ld.global"):
            run += 1
        elif instruction.startswith(("bra", "bar", "st.global")):
            runs.append(run)
            run = 0
    assert max(runs) >= fewest
    assert sum(0 < run < fewest for run in runs) <= 2  # an epilogue's bias


@needs_nvcc
@pytest.mark.parametrize(("dtype", "kind"), [("float16", "f16"), ("bfloat16", "bf16")])
def test_a_step_of_a_warp_has_its_matrix_instructions_and_nothing_in_local_memory(dtype, kind, tmp_path):
    names = [instruction.partition(" ")[0] for instruction in ptx_of("half_conv", tmp_path, dtype)]
    product = f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32"
    multiplies, loads = (sum(name.startswith(start) for name in names) for start in (product, "ldmatrix"))
    # Of 16 terms a warp multiplies two fragments of A by two of B; nvcc may unroll the two such parts of a step.
    assert (multiplies, loads) in ((4, 3), (8, 6))
    assert not any("local" in name for name in names)


@needs_nvcc
def test_a_step_of_single_precision_is_rounded_and_stored_in_vectors(tmp_path):
    device = preset("cuda:h200+tf32")
    function = Function("conv", function_of("half_conv", "float32"), device, frozenset({1}))
    text = source_of([TF32_RULE.build(function, TILINGS["half_conv"][1])], device)
    names = [instruction.partition(" ")[0] for instruction in instructions_of(text, tmp_path)]
    assert sum(name.startswith("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") for name in names) in (4, 8, 16)
    assert any(name.startswith("st.shared.v4") for name in names)  # the weights, packed
    assert not any("local" in name or name.startswith("call") for name in names)


@needs_nvcc
@pytest.mark.parametrize(
    ("dtype", "extreme"), [("float32", "max.NaN.f32"), ("float16", "max.NaN.f16"), ("bfloat16", "max.NaN.bf16")]
)
def test_a_padded_pool_loads_the_windows_of_several_results_before_it_compares(dtype, extreme, tmp_path):
    choices = {"vectors_per_thread": 6, "threads": 64, "vector_width": 1}
    kernel = ELEMENTWISE_RULE.build(Function("pool", function_of("max_pool", dtype), H200, frozenset()), choices)
    rows = instructions_of(source_of([kernel], H200), tmp_path)
    loads, comparisons = ([i for i, row in enumerate(rows) if name in row] for name in ("ld.global", extreme))
    assert (len(loads), len(comparisons)) == (27, 27)  # of three results, twice
    assert max(loads) < min(comparisons)
    assert not any("setp.nan" in row or "setp.num" in row for row in rows)


@pytest.mark.parametrize(
    ("taps", "channels", "depth", "fused", "count"),
    [(9, 96, 32, False, 27), (1, 64, 16, False, 4), (49, 3, 32, True, 5), (9, 28, 16, False, 18), (9, 4, 32, True, 2)],
)
def test_steps_cover_a_window_position_by_position_unless_that_is_mostly_padding(taps, channels, depth, fused, count):
    covering = Covering(taps, channels, depth)
    assert (covering.fused, covering.count) == (fused, count)
    assert covering.count * depth >= taps * channels


def test_a_product_is_read_as_axes_and_expressions():
    product = read_product(function_of("conv"))
    assert (product.i.extents, product.j.extents, product.taps.extents) == ((1, 13, 13), (20,), (3, 3))
    assert product.channels.extents == (8,) and product.fast_i
    assert [operand.spatial_fast for operand in product.operands] == [True, False]


def test_a_function_that_is_no_product_is_not_read():
    with pytest.raises(ValueError, match="no product"):
        read_product(function_of("softmax"))


def test_linear_indices_count_the_last_axis_fastest():
    product = read_product(function_of("conv"))
    assert [int(tvm.sym.Analyzer().simplify(v)) for v in product.i.at(number(29)).values()] == [0, 2, 3]


def test_weights_are_packed_by_steps_and_columns():
    function = Function("conv", function_of("conv"), H200, frozenset({1}))
    kernel = GEMM_RULE.build(function, {"i": 32, "j": 32, "k": 16, "mi": 2, "mj": 4, "slices": 1})
    assert kernel.packs == {1: Pack((32, 8, 3, 3), (32, 8, 3, 3), (2, 3, 1, 0))}


def test_steps_after_the_first_are_whole_so_that_addresses_of_a_matrix_are_never_cut_off():
    function = Function("matmul", function_of("matmul"), H200, frozenset({1}))
    kernel = GEMM_RULE.build(function, {"i": 16, "j": 32, "k": 32, "mi": 2, "mj": 4, "slices": 1})
    terms = int(function.func.params[0].shape[-1])
    missing = -terms % 32
    assert missing
    (pack,) = kernel.packs.values()
    assert pack.before == (missing, 0)
    assert not pack.apply(np.ones((terms, int(function.func.params[1].shape[-1])), "float32"))[:missing].any()
    loop = source_of([kernel], H200).split("for (int i_", 1)[1].split("__syncthreads", 1)[1]
    assert f"{terms - 1})" not in loop
