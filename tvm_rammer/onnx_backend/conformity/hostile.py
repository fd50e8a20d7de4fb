"""Cases with values that nobody expects: each input in turn, all of it or one element."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx.backend.test.case.test_case import TestCase

from ...errors import RammerError, first_line
from ..backend import RammerBackend
from .cases import FOREIGN, REFUSED, RIGHT, Verdict, data_sets, model_of, operator_of


def judge_hostile(name: str, case: TestCase) -> Verdict:
    """Run a case with hostile values: right is what ends in results, or in an error of ours.

    What the results are, nobody says. The process is to survive.
    """
    operator = operator_of(name, case)
    try:
        prepared = RammerBackend.prepare(model_of(case))
        inputs, _ = next(data_sets(case))
        prepared.run(inputs)
    except RammerError as error:
        return Verdict(name, operator, REFUSED, str(error))
    for number, array in enumerate(inputs):
        for value, changed in _changed(array):
            try:
                prepared.run([*inputs[:number], changed, *inputs[number + 1 :]])
            except RammerError:
                continue
            except Exception as error:
                message = f"input {number} of {value}: {type(error).__name__}: {first_line(error)}"
                return Verdict(name, operator, FOREIGN, message)
    return Verdict(name, operator, RIGHT)


def _changed(array: Any) -> Iterator[tuple[object, np.ndarray]]:
    """A hostile value, and the array with it everywhere, or in one place."""
    if not isinstance(array, np.ndarray) or not array.size:
        return
    for value in _values(array.dtype):
        yield value, np.full_like(array, value)
        one = array.copy()
        one.reshape(-1)[array.size // 2] = value
        yield value, one


def _values(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "f":
        floats = np.finfo(dtype)
        return [np.nan, np.inf, -np.inf, floats.max, floats.min, floats.tiny / 2]
    if dtype.kind in "iu":
        lowest, highest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        some = {lowest, highest, 0, 7, -1, -8, 10**6, 2**31, -(2**40)}
        return sorted(n for n in some if lowest <= n <= highest)
    return []
