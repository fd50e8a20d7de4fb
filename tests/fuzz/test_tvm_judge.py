"""What the judge by TVM's plain pipeline says of results that are not its own."""

import numpy as np
import pytest

from .judge.tvm_judge import PlainTvm

SUM = """@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def total(x: T.Buffer((2048,), "{0}"), y: T.Buffer((1,), "{0}")):
        for i, k in T.grid(1, 2048):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    y[vi] = T.{0}(0)
                y[vi] = y[vi] + x[vk]

    @R.function
    def main(x: R.Tensor((2048,), "{0}")) -> R.Tensor((1,), "{0}"):
        with R.dataflow():
            y = R.call_tir(Module.total, (x,), out_ty=R.Tensor((1,), "{0}"))
            R.output(y)
        return y
"""


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_roundings_of_a_long_sum_are_told_from_wrong_terms(dtype):
    plain = PlainTvm(SUM.format(dtype.__name__))
    feeds = [np.repeat(np.array([1, 0.25], dtype), [1448, 600])]  # in float16, 1448 + 0.25 is 1448
    want, exact = plain.run(feeds), np.full(1, 1598, dtype)
    assert plain.fault(feeds, want, want) is None
    assert plain.fault(feeds, want, [exact]) == ("unstable" if dtype is np.float16 else None)
    assert plain.fault(feeds, want, [exact * dtype(4)]).startswith("value")
    assert plain.fault(feeds, want, [exact * dtype(np.nan)]).startswith("NaN")
