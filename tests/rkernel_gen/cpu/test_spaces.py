"""The whole space of each rule: what it promises of a tiling is what is built."""

from dataclasses import replace

import numpy as np
import pytest
from tvm.relax import op

from tests.functions import TARGET, UNOPTIMISED, fused, random_arrays, run, run_kernels
from tests.marks import one_in
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.analysis.parallel import parallel_extent
from tvm_rammer.rkernel_gen.construct import space
from tvm_rammer.rkernel_gen.cpu.rules import CPU_RULES
from tvm_rammer.rkernel_gen.tiling import Function

CPU = replace(host_cpu(), units=2)
SAMPLED = 6

FUNCTIONS = {
    "conv 3x3": ([(1, 6, 9, 11), (20, 6, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "conv 1x1": ([(2, 24, 8, 9), (40, 24, 1, 1)], lambda x, w: op.nn.conv2d(x, w)),
    "conv, 3 groups": ([(1, 12, 9, 9), (18, 4, 3, 3)], lambda x, w: op.nn.conv2d(x, w, strides=2, groups=3)),
    "transposed conv": (
        [(1, 6, 5, 7), (6, 10, 3, 3)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2, padding=1),
    ),
    "max pool": ([(1, 10, 15, 15)], lambda x: op.nn.max_pool2d(x, (3, 3), strides=2, padding=1)),
    "matmul": ([(12, 40), (40, 96)], op.matmul),
    "softmax": ([(6, 8, 33)], lambda x: op.nn.softmax(x)),
    "layer norm": ([(6, 8, 32), (32,), (32,)], lambda x, g, b: op.nn.layer_norm(x, g, b, axes=-1)),
    "add with broadcast": ([(2, 6, 5, 8), (1, 6, 1, 1)], op.add),
}  # fmt: skip
RULES = {rule.name: rule for rule in CPU_RULES}


def function_of(name):
    func = fused(*FUNCTIONS[name])
    return Function("op", func, CPU, frozenset(range(1, len(func.params) - 1)))


def tilings_of(function):
    return [tiling for rule in CPU_RULES for tiling in rule.tilings(function)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tilings_are_many_different_and_bounded(name):
    tilings = tilings_of(function_of(name))
    assert 6 <= len(tilings) <= 2000
    assert len(set(tilings)) == len({t.label for t in tilings}) == len(tilings)
    assert all(0 < t.rtask_us < 1e4 for t in tilings)
    counts = {t.num_rtasks for t in tilings}
    assert min(counts) <= 2
    assert max(counts) <= 64


@pytest.mark.parametrize("name", one_in(3, FUNCTIONS))
def test_a_sample_of_the_space_is_as_promised_and_right(name):
    function = function_of(name)
    rng = np.random.default_rng(0)
    for rule in CPU_RULES:
        tilings = list(rule.tilings(function))
        check(function, [tilings[i] for i in rng.permutation(len(tilings))[:SAMPLED]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conv, 3 groups", "transposed conv"])
def test_every_window_is_right(name):
    function = function_of(name)
    check(function, RULES["window"].tilings(function)[::3], UNOPTIMISED)


def check(function, tilings, target=TARGET):
    kernels = [RULES[tiling.rule].build(function, dict(tiling.choices)) for tiling in tilings]
    for tiling, kernel in zip(tilings, kernels, strict=True):
        assert kernel.spec.name == f"op_{tiling.label}"
        assert (kernel.spec.num_rtasks, kernel.spec.rtask_us) == (tiling.num_rtasks, tiling.rtask_us)
        assert tiling.num_rtasks in (1, parallel_extent(kernel.func))
    arrays = random_arrays(function.func)
    want = run(function.func, arrays, UNOPTIMISED)
    for got in run_kernels(kernels, arrays, target):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_choices_outside_of_the_space_give_no_kernel(name):
    function = function_of(name)
    for rule in CPU_RULES:
        assert rule.build(function, {"unheard": 1}) is None
        for tiling in rule.tilings(function)[:1]:
            assert rule.build(function, dict(tiling.choices) | {"simd": 7}) is None


def test_better_tilings_are_predicted_to_be_faster():
    """One accumulator waits for itself; more rTasks than units repeat nothing here, and each has less to do."""
    function = function_of("matmul")
    tilings = {(t["vectors"], t["pixels"]): t for t in RULES["contraction"].tilings(function) if t.num_rtasks == 2}
    assert tilings[2, 6].rtask_us < tilings[1, 6].rtask_us
    softmax = {t.num_rtasks: t for t in reversed(RULES["generic"].tilings(function_of("softmax")))}
    assert softmax[1].rtask_us > softmax[2].rtask_us > softmax[48].rtask_us


def test_loads_have_a_price_where_vectors_come_in_two_halves():
    """A tile of twelve filters by one vector of pixels loads as much as it multiplies: 1.4 times as long on a Zen 1."""
    device = replace(
        CPU, arch="x86-64-v3", vector_bytes=32, flops_per_cycle=16, clock_ghz=2.5, loads_per_cycle=1.0,
        step_cycles=0.0, line_ns=0.0, unit_bytes=512 << 10, cache_bytes=8 << 20,
    )  # fmt: skip
    func = fused([(1, 512, 13, 13), (1000, 512, 1, 1)], lambda x, w: op.nn.conv2d(x, w))
    best = space(Function("op", func, device, frozenset({1})))[0]
    assert best.rule == "filters"
    assert best["vectors"] > 1
