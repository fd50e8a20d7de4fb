"""What is sorted of bfloat16 is sorted by its values, and nothing is written elsewhere."""

import ml_dtypes
import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module

OPERATORS = {
    "sort": lambda x: relax.op.sort(x, -1),
    "argsort": lambda x: relax.op.argsort(x, -1),
    "largest": lambda x: relax.op.topk(x, 3, -1, "values"),
    "where the largest are": lambda x: relax.op.topk(x, 3, -1, "indices"),
    "both": lambda x: relax.op.topk(x, 3, -1, "both"),
    "median": lambda x: relax.op.median(x, [1]),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_numbers_are_sorted(operator, dtype):
    numbers = np.random.default_rng(0).permutation(200).reshape(4, 50) - 100  # exact in all types, and different
    module = tvm_rammer.compile(relax_module([(4, 50)], OPERATORS[operator], dtype=dtype), cache=False)
    got = module(numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))
    order = np.argsort(numbers, -1)
    last = order[:, ::-1][:, :3]
    values = {
        "sort": [np.sort(numbers, -1)], "argsort": [order], "where the largest are": [last],
        "largest": [np.take_along_axis(numbers, last, -1)], "both": [np.take_along_axis(numbers, last, -1), last],
        "median": [np.sort(numbers, -1)[:, 24], order[:, 24]],
    }  # fmt: skip
    for result, want in zip(got if isinstance(got, tuple) else (got,), values[operator], strict=True):
        np.testing.assert_array_equal(np.asarray(result).astype(np.float64), want)
