"""Slices whose begins, ends and strides only the data know.

TVM counts elements below 0 where a slice ends before it begins, and takes a large stride's negative, which overflows.
Here bounds are clamped as ONNX's Slice says, and a slice has at least no elements. A stride of 0 has been
refused before (`check_sizes`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relax, te, tirx
from tvm.ir import Call, Constant

from .stock import Legalization, stock

_ZERO, _ONE = (tirx.const(n, "int64") for n in (0, 1))


def slices() -> Mapping[str, Legalization]:
    """Legalizations by the operator's name."""
    return {"relax.dynamic_strided_slice": _slice}


def _slice(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """The extents by a function of their own; they get names, and the result is of that shape."""
    data, begins, ends, strides = call.args
    if not isinstance(data.ty.shape, relax.ShapeExpr):
        return stock(bb, call)
    rank = len(data.ty.shape)
    known = strides.value.numpy().tolist() if isinstance(strides, Constant) else None

    def step(tensor: te.Tensor, axis: int, extent: Any) -> Any:
        return _step(tensor[axis] if known is None else tirx.const(known[axis], "int64"), extent)

    def count(x: te.Tensor, begin: te.Tensor, end: te.Tensor, stride: te.Tensor) -> te.Tensor:
        def of_axis(axis: int) -> Any:
            extent, by = x.shape[axis], step(stride, axis, x.shape[axis])
            first, last = _first(begin[axis], by, extent), _last(end[axis], by, extent)
            return _count(first, last, by, extent)

        return te.compute((rank,), lambda axis: _chosen([of_axis(n) for n in range(rank)], axis), name="extents")

    shape = bb.emit(relax.op.tensor_to_shape(bb.emit(bb.call_te(count, data, begins, ends, strides))))
    extents = [tirx.Var(f"extent{axis}", "int64") for axis in range(rank)]
    bb.match_cast(shape, relax.ShapeType(extents))

    def take(x: te.Tensor, begin: te.Tensor, stride: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> Any:
            steps = [step(stride, axis, extent) for axis, extent in enumerate(x.shape)]
            firsts = [_first(begin[axis], by, x.shape[axis]) for axis, by in enumerate(steps)]
            return x(*(first + i * by for first, i, by in zip(firsts, index, steps, strict=True)))

        return te.compute(extents, element, name="slice")

    return bb.call_te(take, data, begins, strides, primfunc_name_hint="dynamic_strided_slice")


def _step(stride: Any, extent: Any) -> Any:
    """A stride no longer than its axis, which is as good as any longer one, and not 0."""
    most = tirx.max(extent, _ONE)
    stride = tirx.max(tirx.min(stride, most), -most)
    return tirx.Select(stride == _ZERO, _ONE, stride)


def _first(begin: Any, step: Any, extent: Any) -> Any:
    """Where a slice begins: on the axis, or behind it where it goes forward."""
    return tirx.max(tirx.min(_from_the_first(begin, extent), tirx.Select(step < 0, extent - 1, extent)), _ZERO)


def _last(end: Any, step: Any, extent: Any) -> Any:
    """Where a slice ends: behind its last element, or before it where it goes backward."""
    lowest, highest = tirx.Select(step < 0, -_ONE, _ZERO), tirx.Select(step < 0, extent - 1, extent)
    return tirx.max(tirx.min(_from_the_first(end, extent), highest), lowest)


def _from_the_first(index: Any, extent: Any) -> Any:
    return tirx.Select(index < 0, index + extent, index)


def _count(first: Any, last: Any, step: Any, extent: Any) -> Any:
    """How many elements there are between two places; on an axis without any there are none."""
    far = tirx.Select(step < 0, first - last, last - first)
    size = tirx.Select(step < 0, -step, step)
    return tirx.min(tirx.floordiv(tirx.max(far, _ZERO) + size - 1, size), extent)


def _chosen(numbers: Sequence[Any], place: tirx.Var) -> Any:
    """The number of a place."""
    chosen = numbers[-1]
    for other in reversed(range(len(numbers) - 1)):
        chosen = tirx.Select(place == other, numbers[other], chosen)
    return chosen
