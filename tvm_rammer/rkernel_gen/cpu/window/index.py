"""Strides and groups of a window, proven from its indices."""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Range

from ...analysis.affine import linear


def line(index: Expr, axes: Sequence[tirx.Var], axis: tirx.Var, tap: tirx.Var) -> tuple[int, int, int] | None:
    """Stride, dilation and offset of `axis * stride + tap * dilation + offset`; no other of the axes is in it."""
    factors = linear(index, axes)
    if factors is None:
        return None
    by_axis = {a: factor for a, factor in zip(axes, factors, strict=False) if factor}
    stride, dilation = by_axis.pop(axis, 0), by_axis.pop(tap, 0)
    return (stride, dilation, factors[-1]) if stride > 0 and dilation > 0 and not by_axis else None


def groups_of(index: Expr, f: tirx.Var, c: tirx.Var | None, filters: int, channels: int) -> int | None:
    """The number of groups, from the data's channel index; None where that is no channel of a group."""
    if c is None:
        return filters if index.same_as(f) else None
    if index.same_as(c):
        return 1
    ranges = tvm.sym.Analyzer()
    last = ranges.simplify(_at(index, {f: filters - 1, c: 0}))
    if not isinstance(last, tirx.IntImm) or int(last) % channels:
        return None
    groups = int(last) // channels + 1
    if groups < 1 or filters % groups:
        return None
    ranges.bind(f, Range(0, filters))
    ranges.bind(c, Range(0, channels))
    return groups if ranges.can_prove_equal(index, f // (filters // groups) * channels + c) else None


def is_filter_of_group(index: Expr, f: tirx.Var, filters: int, group: int) -> bool:
    """Whether an index is the filter within its group of so many."""
    if group == filters:
        return bool(index.same_as(f))
    ranges = tvm.sym.Analyzer()
    ranges.bind(f, Range(0, filters))
    return bool(ranges.can_prove_equal(index, f % group))


def _at(index: Expr, values: dict[tirx.Var, int]) -> Expr:
    """An index for values of axes."""
    exact = {var: tirx.IntImm(str(var.ty.dtype), value) for var, value in values.items()}
    return tvm_ffi.structural_map(index, (tirx.Var, lambda var: exact.get(var, var)), order="post")
