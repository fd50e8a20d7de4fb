"""Convolutions whose sums are split over rTasks, emulated: the partial sums, their sum, and a program of both."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.emulation.programs import H200, plan, reference, run_all
from tests.functions import relax_module
from tests.marks import slow_but
from tests.rkernel_gen.cuda.operators import check, function_of
from tvm_rammer.compilation.splitting import split_long_sums
from tvm_rammer.device import preset
from tvm_rammer.relay_passes import prepare
from tvm_rammer.rkernel_gen.construct import build, space
from tvm_rammer.rkernel_gen.cuda.product.gemm import GEMM_RULE
from tvm_rammer.rkernel_gen.cuda.split.cut import cut_window
from tvm_rammer.rkernel_gen.tiling import Function

COUNTS = {"conv": [3, 9], "conv_strided": [7, 49]}
"""Partial sums of an element: for each row of the window, and for each position."""


@pytest.mark.parametrize("name", slow_but(["conv"], COUNTS))
def test_partial_sums_and_their_sum_are_functions(name):
    found = cut_window(function_of(name))
    assert [halves.count for halves in found] == COUNTS[name]
    for halves in found:
        parts = Function("parts", halves.parts, H200, frozenset({1}))
        tilings = GEMM_RULE.tilings(parts)
        kernels = [GEMM_RULE.build(parts, dict(tiling.choices)) for tiling in [tilings[0], tilings[len(tilings) // 2]]]
        assert all(kernel.packs[1].shape[-1] == kernel.func.params[1].shape[-1] for kernel in kernels)
        check(halves.parts, kernels, constants={1})
        total = Function("total", halves.total, H200)
        check(halves.total, [build(total, space(total)[0])])


@pytest.mark.parametrize(
    "name", ["matmul", "conv_grouped", "conv_groups_of_4", "conv_depthwise", "max_pool", "half_conv"]
)
def test_what_is_no_convolution_with_a_window_or_has_groups_or_half_precision_stays_whole(name):
    assert not cut_window(function_of(name))


def biased(x, w, b):
    return relax.op.nn.relu(relax.op.add(relax.op.nn.conv2d(x, w, padding=1), b))


def split(shapes, device=H200):
    prepared = prepare(tvm.target.Target(device.target_config()))(relax_module(shapes, biased))
    return prepared, split_long_sums(prepared, device)


def test_a_long_sum_is_two_operators_of_a_program():
    shapes = [(1, 96, 6, 6), (32, 96, 3, 3), (1, 32, 1, 1)]
    module = relax_module(shapes, biased)
    (built,) = plan(module, veus=4)
    assert [op.function.rpartition("_")[2] for op in built.program.graph.operators] == ["parts", "sum"]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    for seed in range(2):
        written = run_all([built], {f"x{i}": a for i, a in enumerate(arrays)}, seed)
        (result,) = [written[b.name] for b in built.program.graph.buffers if b.kind == "output"]
        np.testing.assert_allclose(result, reference(module, arrays)[0], rtol=1e-4, atol=1e-4)


def test_short_sums_many_tiles_and_processors_are_left_alone():
    for shapes, device in [
        ([(1, 8, 6, 6), (32, 8, 3, 3), (1, 32, 1, 1)], H200),
        ([(1, 16, 112, 112), (64, 16, 3, 3), (1, 64, 1, 1)], H200),
        ([(1, 96, 6, 6), (32, 96, 3, 3), (1, 32, 1, 1)], preset("cpu")),
    ]:
        prepared, after = split(shapes, device)
        assert after.same_as(prepared)


def test_a_function_that_has_the_name_of_a_part_stays():
    prepared, after = split([(1, 96, 6, 6), (32, 96, 3, 3), (1, 32, 1, 1)])
    (whole,) = {v.name_hint for v in prepared.get_global_vars()} - {v.name_hint for v in after.get_global_vars()}
    mine = tvm.tirx.PrimFunc([], tvm.tirx.Evaluate(0)).with_attr("mine", 1)
    prepared.update_func(tvm.ir.GlobalVar(f"{whole}_parts"), mine)
    after = split_long_sums(prepared, H200)
    assert "mine" in after[f"{whole}_parts"].attrs
    assert {f"{whole}_parts_1", f"{whole}_sum"} <= {v.name_hint for v in after.get_global_vars()}
