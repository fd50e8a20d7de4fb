"""Softmax and its logarithm on a CPU: a row's maximum does not look for NaN. And the logarithm of two exponentials."""

import math
from collections.abc import Sequence

from tvm import relax, te, tirx, topi
from tvm.ir import Call
from tvm.tirx import Expr

from ....define_arithmetic import larger
from ..products.widen_halves import HALVES
from .extremes import extremes
from .stock import Legalization, has_halves, stock, widened

SOFTMAXES = ("relax.nn.softmax", "relax.nn.log_softmax")

_LARGEST = te.comm_reducer(larger, lambda dtype: tirx.const(-math.inf, dtype))
"""Of a row's numbers. It need not tell of a NaN among them: the sum of their exponentials does."""


_RAISED = 2.0**64
"""An exponential times this is one formula on a CPU."""


def softmaxes(sum_in_float32: Legalization) -> dict[str, Legalization]:
    """Legalizations by the operator's name.

    A maximum that lets NaN through takes several instructions, one after another; here the sum lets it through. Half
    precision is computed step by step, each rounded to the type, as ONNX's reference does it; the sum is exact. Its
    logarithm is that of float32, rounded.

    Parameters
    ----------
    sum_in_float32 : callable
        The legalization of a sum in half precision.
    """

    def softmax(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
        if str(call.ty.dtype) in HALVES:
            return _by_steps(bb, call, sum_in_float32)
        return bb.call_te(_softmax, call.args[0], int(call.attrs.axis), primfunc_name_hint="softmax")

    def log_softmax(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
        if str(call.ty.dtype) in HALVES:
            return widened(bb, call)
        return bb.call_te(_log_softmax, call.args[0], int(call.attrs.axis), primfunc_name_hint="log_softmax")

    return {"relax.nn.softmax": softmax, "relax.nn.log_softmax": log_softmax}


def _by_steps(bb: relax.BlockBuilder, call: Call, sum_in_float32: Legalization) -> relax.Expr:
    x, axis = call.args[0], [int(call.attrs.axis)]

    def step(made: relax.Expr, legalize: Legalization = stock) -> relax.Expr:
        return bb.emit(legalize(bb, bb.normalize(made)))

    most = step(relax.op.max(x, axis, keepdims=True), extremes()["relax.max"])
    powers = step(relax.op.exp(step(relax.op.subtract(x, most))))
    total = step(relax.op.sum(powers, axis, keepdims=True), sum_in_float32)
    return stock(bb, bb.normalize(relax.op.divide(powers, total)))


def _softmax(x: te.Tensor, axis: int) -> te.Tensor:
    """All exponentials are raised by the same power of two: those below 2^-126 would be 0, and their logarithms
    infinite, before the quotient rounds them as it should.
    """
    rows = _Rows(x, axis)
    raised = tirx.const(_RAISED, x.dtype)
    powers = te.compute(x.shape, lambda *at: te.exp(x(*at) - rows.of(rows.largest, at)) * raised, name="softmax_powers")
    total = rows.reduced(te.sum, powers, "softmax_sum")
    return te.compute(x.shape, lambda *at: powers(*at) / rows.of(total, at), name="softmax")


def _log_softmax(x: te.Tensor, axis: int) -> te.Tensor:
    rows = _Rows(x, axis)
    less = te.compute(x.shape, lambda *at: x(*at) - rows.of(rows.largest, at), name="softmax_less")
    powers = te.compute(x.shape, lambda *at: te.exp(less(*at)), name="softmax_powers")
    total = rows.reduced(te.sum, powers, "softmax_sum")
    logarithm = te.compute(rows.shape, lambda *at: te.log(total(*at)), name="softmax_log")
    return te.compute(x.shape, lambda *at: less(*at) - rows.of(logarithm, at), name="log_softmax")


def log_add_exp(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """By the larger one: TVM's own is infinite where one of the exponentials is, which that of 89 is in float32."""
    if has_halves(call):
        return widened(bb, call)
    return bb.call_te(_log_add_exp, *call.args, primfunc_name_hint="log_add_exp")


def _log_add_exp(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    larger, between, same = topi.maximum(a, b), topi.subtract(a, b), topi.equal(a, b)
    none = tirx.const(0, larger.dtype)

    def element(*at: tirx.Var) -> Expr:
        # Of two equal infinities there is no difference.
        less = tirx.Select(same(*at), none, none - tirx.abs(between(*at)))
        return larger(*at) + tirx.log1p(tirx.exp(less))

    return te.compute(larger.shape, element, name="log_add_exp", tag="broadcast")


class _Rows:
    """The rows of a tensor along an axis, and the largest number of each."""

    def __init__(self, x: te.Tensor, axis: int) -> None:
        self._axis = axis % len(x.shape)
        self._length = x.shape[self._axis]
        self.shape = [size for i, size in enumerate(x.shape) if i != self._axis]
        self.largest = self.reduced(_LARGEST, x, "softmax_largest")

    def reduced(self, reduce: te.CommReducer, value: te.Tensor, name: str) -> te.Tensor:
        """A number of each row."""
        k, axis = te.reduce_axis((0, self._length), "k"), self._axis
        return te.compute(self.shape, lambda *at: reduce(value(*at[:axis], k, *at[axis:]), axis=k), name=name)

    def of(self, numbers: te.Tensor, at: Sequence[Expr]) -> Expr:
        """The number of the row that an element is in."""
        return numbers(*at[: self._axis], *at[self._axis + 1 :])
