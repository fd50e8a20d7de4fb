"""Slices and places of tensors whose sizes only the data say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Constant
from tvm.relax.frontend.onnx.onnx_frontend import ScatterND, Slice

from .guards import resized

_FAR = 2**31
"""No axis is as long."""


def cut(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Convert a Slice: backwards along an axis as long as only the data say, TVM counts from where there is nothing.

    Its sums overflow, too, where a bound is the least number there is, as exporters write "to the first element".
    """
    data, *given = (*inputs, None, None)[:5]
    each: dict[int, tuple[int, int, int]] = {}
    if isinstance(data.ty, relax.TensorType) and isinstance(data.ty.shape, relax.ShapeExpr):
        each = _bounds(data.ty.ndim, *given)
    back = {axis for axis, bounds in each.items() if _misread(data.ty.shape[axis], *bounds)}
    if not back:
        return Slice._impl_v13(bb, [data, *given], attributes, [{}, {}])
    for axis in sorted(back):
        if _is_whole(*each[axis]):
            data = bb.emit(relax.op.flip(data, axis))
            del each[axis]
    if not each:
        return data
    whole = (0, np.iinfo(np.int64).max, 1)
    numbers = np.array([each.get(axis, whole) for axis in range(data.ty.ndim)], np.int64)
    return relax.op.dynamic_strided_slice(data, *(relax.const(column, "int64") for column in numbers.T.copy()))


def _bounds(rank: int, begins: Any, ends: Any, axes: Any, steps: Any) -> dict[int, tuple[int, int, int]]:
    """Where slices begin and end, and their steps, by the axis; nothing where they are computed, or have no steps."""
    axes = relax.const(np.arange(rank)) if axes is None else axes
    if not all(isinstance(value, Constant) for value in (begins, ends, axes, steps)):
        return {}
    rows = zip(*(value.value.numpy().tolist() for value in (axes, begins, ends, steps)), strict=False)
    return {axis % rank: (begin, end, step) for axis, begin, end, step in rows}


def _misread(size: Any, begin: int, end: int, step: int) -> bool:
    """Whether TVM's own slice would be another one, or none."""
    return not isinstance(size, tirx.IntImm) and step < 0 and (begin < -1 or max(begin, -end, -step) >= _FAR)


def _is_whole(begin: int, end: int, step: int) -> bool:
    """Whether a slice is all of an axis from the last element to the first."""
    return step == -1 and (begin == -1 or begin >= _FAR) and end <= -_FAR


def scatter_nd(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Convert a ScatterND whose updates are as many as its indices by another name; that is checked when it runs."""
    data, indices, updates = inputs
    shapes = [value.ty.shape for value in inputs]
    if all(isinstance(shape, relax.ShapeExpr) for shape in shapes) and isinstance(indices.ty.shape[-1], tirx.IntImm):
        *places, depth = indices.ty.shape
        wanted = [*places, *list(data.ty.shape)[int(depth) :]]
        pairs = list(zip(updates.ty.shape, wanted, strict=False))
        differ = [pair for pair in pairs if not tvm_ffi.structural_equal(*pair)]
        if len(wanted) == updates.ty.ndim and any(not all(isinstance(n, tirx.IntImm) for n in pair) for pair in differ):
            updates = resized(bb, updates, wanted, attributes, "got updates of another shape than its indices ask for")
    return ScatterND._impl_v18(bb, [data, indices, updates], attributes, [{}, {}])
