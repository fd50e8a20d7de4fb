"""Averages of a few neighbours along one axis, as LRN has them over channels: sums that are written out."""

import math
from collections.abc import Callable
from functools import partial

from tvm import relax, te, tirx
from tvm.ir import Call

from ...bindings import static_shape
from .stock import Legalization

MOST_NEIGHBOURS = 8
"""Elements of a window at most: each is a load, and what it is computed from is computed for each place anew."""


def pools_along_an_axis(others: Legalization) -> dict[str, Legalization]:
    """Legalizations for a GPU by the operator's name.

    A reduction ends a fused function, and what is before it is another one. An element of a written-out sum is computed
    from some elements of its input, so TVM fuses it with what is before and after: LRN is one function in the place of
    three, which wait for one another.

    Parameters
    ----------
    others : callable
        The legalization of pools that are something else.
    """
    return {"relax.nn.avg_pool3d": partial(_legalize, others)}


def _legalize(others: Legalization, bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    attrs, window = call.attrs, [int(n) for n in call.attrs.pool_size]
    long = [axis for axis, size in enumerate(window) if size > 1]
    plain = attrs.layout == attrs.out_layout == "NCDHW" and math.prod([*attrs.strides, *attrs.dilation]) == 1
    shape = static_shape(call.args[0].ty)
    if shape is None or len(long) != 1 or window[long[0]] > MOST_NEIGHBOURS or not plain:
        return others(bb, call)
    padding = [int(n) for n in attrs.padding]
    elsewhere = any(n for at, n in enumerate(padding) if at % len(window) != long[0])
    if elsewhere or not attrs.count_include_pad or str(call.ty.dtype) != "float32":
        return others(bb, call)
    axis = len(shape) - len(window) + long[0]
    average = _average(static_shape(call.ty), axis, window[long[0]], padding[long[0]])
    return bb.call_te(average, call.args[0], primfunc_name_hint="avg_pool3d")


def _average(shape: tuple[int, ...] | None, axis: int, size: int, before: int) -> Callable[[te.Tensor], te.Tensor]:
    """The mean of `size` neighbours along an axis, the first of which is `before` elements ahead; zeros are outside."""
    assert shape is not None

    def compute(x: te.Tensor) -> te.Tensor:
        zero = tirx.const(0, x.dtype)

        def neighbour(index: tuple[tirx.Var, ...], n: int) -> tirx.Expr:
            at = index[axis] + (n - before)
            value = x(*index[:axis], at, *index[axis + 1 :])
            return tirx.if_then_else(tirx.all(at >= 0, at < x.shape[axis]), value, zero)

        def element(*index: tirx.Var) -> tirx.Expr:
            total = neighbour(index, 0)
            for n in range(1, size):
                total = total + neighbour(index, n)
            return total / tirx.const(size, x.dtype)

        return te.compute(shape, element, name="average", tag="injective")

    return compute
