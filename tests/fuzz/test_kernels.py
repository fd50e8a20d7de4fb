"""Kernels of random functions compute what the functions do: a few of each kind here, all others by `scripts/fuzz`."""

from collections import Counter

import pytest

from tests.emulation.programs import H200

from .generate.kernels import WITH_WEIGHTS, kernel_case
from .generate.scripts import script
from .judge.kernels import UnjudgedError, Verdict, judge_kernels
from .judge.tvm_judge import parse

CASES, MORE_CASES, CUDA_CASES = 60, 600, 40


def verdict_on(seed: int, device=None) -> Verdict:
    case = kernel_case(seed)
    func = parse(script(case.recipe))["f0"]
    try:
        return judge_kernels(func, list(case.feeds.values()), weights=case.recipe.entry == WITH_WEIGHTS, device=device)
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
    assert check(range(CASES, MORE_CASES))["window"] >= 20


@pytest.mark.slow
def test_cuda_kernels_of_random_functions() -> None:
    found = check(range(CUDA_CASES), H200)
    assert {"gemm", "window", "reduction", "elementwise"} <= set(found)
