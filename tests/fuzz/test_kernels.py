"""Kernels of random functions compute what the functions do: a few of each kind here, all others by `scripts/fuzz`."""

from collections import Counter

import numpy as np
import pytest

from tests.emulation.programs import H200

from .generate.kernels import WITH_WEIGHTS, kernel_case
from .generate.scripts import script
from .judge.evaluated import Evaluated
from .judge.kernels import UnjudgedError, Verdict, judge_kernels
from .judge.tvm_judge import parse

CASES, MORE_CASES, CUDA_CASES = 60, 200, 40


def verdict_on(seed: int, device=None) -> Verdict:
    case = kernel_case(seed)
    func = parse(script(case.recipe))["f0"]
    try:
        feeds, weights = list(case.feeds.values()), case.recipe.entry == WITH_WEIGHTS
        return judge_kernels(func, feeds, weights=weights, device=device, right=Evaluated(case.recipe, feeds))
    except UnjudgedError:
        return Verdict("", ())


def check(seeds: range, device=None) -> Counter[str]:
    """All kernels of these cases are right; how many cases each rule made kernels of."""
    verdicts = {seed: verdict_on(seed, device) for seed in seeds}
    assert not {seed: verdict.fault for seed, verdict in verdicts.items() if verdict.fault}
    return Counter(rule for verdict in verdicts.values() for rule in set(verdict.rules))


@pytest.mark.slow
def test_kernels_of_random_functions() -> None:
    found = check(range(CASES))
    assert found["generic"] >= CASES // 2 and found["contraction"] and found["window"]


@pytest.mark.slow
def test_kernels_of_more_random_functions() -> None:
    assert check(range(CASES, MORE_CASES))["window"] >= 3


@pytest.mark.slow
def test_cuda_kernels_of_random_functions() -> None:
    found = check(range(CUDA_CASES), H200)
    assert {"gemm", "window", "reduction", "elementwise"} <= set(found)


SCALAR = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def f0(x: T.Buffer((6, 3, 5), "float32"), y: T.Buffer((), "float32")):
        for j, i in T.grid(5, 1):
            with T.sblock("b0"):
                v = T.axis.reduce(1, i)
                w = T.axis.reduce(5, j)
                with T.init():
                    y[()] = T.float32(0)
                y[()] = y[()] + x[w, 1, w]
"""
ROWS = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def f0(x: T.Buffer((6, 4, 40), "float32"), y: T.Buffer((6, 4), "float32")):
        for k, j, i in T.grid(40, 4, 6):
            with T.sblock("b0"):
                v, w, r = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[v, w] = T.float32(0)
                y[v, w] = y[v, w] + x[v, w, r]
"""
PLAIN = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def f0(x: T.Buffer((6, 40), "float32"), y: T.Buffer((6, 40), "float32")):
        for j, i in T.grid(40, 6):
            with T.sblock("b0"):
                v, w = T.axis.remap("SS", [i, j])
                y[v, w] = x[v, w] * T.float32(2)
"""


@pytest.mark.parametrize("device", [None, H200], ids=["cpu", "cuda"])
@pytest.mark.parametrize("source", [SCALAR, ROWS, PLAIN], ids=["scalar", "rows", "plain"])
def test_loops_may_be_nested_in_another_order_than_the_axes(source, device) -> None:
    func = parse(source)["f0"]
    x = np.random.default_rng(0).uniform(-1, 1, [int(d) for d in func.params[0].shape]).astype("float32")
    verdict = judge_kernels(func, [x], weights=False, device=device)
    assert not verdict.fault and verdict.rules
