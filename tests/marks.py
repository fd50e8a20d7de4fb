"""Which cases of a parametrised test `./scripts/test --quick` runs."""

import shutil
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import onnx
import pytest

newest_onnx = pytest.mark.skipif(
    onnx.__version__.split(".")[:2] < ["1", "23"],
    reason="the reference of an older onnx package differs, or lacks the case",
)
"""For what is compared with onnx's own reference, or taken from its tests, as the newest version has them."""


needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="compiles CUDA text: nvcc is not on the PATH")


def one_in(n: int, cases: Iterable[Any]) -> list[Any]:
    """All cases, for `pytest.mark.parametrize`: one in `n` is left to `--quick`, where all go the same ways.

    Parameters
    ----------
    n : int
    cases : iterable
    """
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*value, marks=[pytest.mark.slow] if i % n else []) for i, value in enumerate(values)]


def slow_but(quick: Iterable[Hashable] | Callable[[Any], bool], cases: Iterable[Any]) -> list[Any]:
    """All cases, for `pytest.mark.parametrize`: those that are not among `quick` are marked as slow.

    Parameters
    ----------
    quick : iterable of hashable, or callable
        The cases that come in each way the code goes, or what is true of them.
    cases : iterable
    """
    chosen = quick if callable(quick) else set(quick).__contains__
    return [case if chosen(case) else pytest.param(case, marks=pytest.mark.slow) for case in cases]
