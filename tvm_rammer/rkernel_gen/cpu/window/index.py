"""Strides, dilations and groups of indices, found by evaluating them at several points."""

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr


def are(indices: list[Expr], axes: list[tirx.Var]) -> bool:
    """Whether indices are exactly these axes."""
    return len(indices) == len(axes) and all(i.same_as(a) for i, a in zip(indices, axes, strict=True))


def evaluate(expr: Expr, values: Mapping[tirx.Var, int]) -> int | None:
    """The value of an index for values of its axes; None where it has other variables."""
    found = tvm.sym.Analyzer().simplify(
        tvm_ffi.structural_map(
            expr, [(tirx.Var, lambda v: tirx.IntImm(str(v.ty.dtype), values[v]) if v in values else v)], order="post"
        )
    )
    return int(found) if isinstance(found, tirx.IntImm) else None


def linear(expr: Expr, axis: tirx.Var, tap: tirx.Var) -> tuple[int, int, int] | None:
    """Stride, dilation and offset of `axis * stride + tap * dilation + offset`, checked at several points."""

    def at(a: int, t: int) -> int | None:
        return evaluate(expr, {axis: a, tap: t})

    offset, stride, dilation = at(0, 0), at(1, 0), at(0, 1)
    if offset is None or stride is None or dilation is None:
        return None
    stride, dilation = stride - offset, dilation - offset
    if any(at(a, t) != a * stride + t * dilation + offset for a, t in ((5, 0), (0, 3), (7, 2), (3, 5))):
        return None
    return (stride, dilation, offset) if stride > 0 and dilation > 0 else None


def groups_of(expr: Expr, f: tirx.Var, c: tirx.Var | None, filters: int, channels: int) -> int | None:
    """The number of groups, from the data's channel index; None where that is no channel of a group."""
    if c is None:
        return filters if expr.same_as(f) else None
    if expr.same_as(c):
        return 1
    last = evaluate(expr, {f: filters - 1, c: 0})
    if last is None or last % channels:
        return None
    groups = last // channels + 1
    if filters % groups:
        return None
    for filt in {0, filters // groups - 1, filters // groups, filters // 2, filters - 1} - {filters}:
        if evaluate(expr, {f: filt, c: channels - 1}) != filt // (filters // groups) * channels + channels - 1:
            return None
    return groups
