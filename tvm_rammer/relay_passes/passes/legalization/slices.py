"""Slices whose begins, ends and strides only the data know.

TVM counts elements below 0 where a slice ends before it begins, and takes a large stride's negative, which overflows.
Here bounds are clamped as ONNX's Slice says, and a slice has at least no elements. A stride of 0 has been
refused before (`check_sizes`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import relax, te, tirx
from tvm.ir import Call, Constant

from ..bound_chains import OPAQUE
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

    def of_axis(x: te.Tensor, axis: int, tensors: Sequence[te.Tensor]) -> list[Any]:
        """What tensors have for an axis, and a stride that is known."""
        numbers = [tensor[axis] for tensor in tensors]
        return numbers if known is None else [*numbers, _step(x.shape[axis], tirx.const(known[axis], "int64"))]

    def emit(name: str, number: Callable[..., Any], *tensors: relax.Expr) -> relax.Var:
        """A number for each axis, by a function of its own: fused, it would be repeated where it is read."""

        def numbers(x: te.Tensor, *read: te.Tensor) -> te.Tensor:
            each = [number(size, *of_axis(x, axis, read)) for axis, size in enumerate(x.shape)]
            return te.compute((rank,), lambda axis: _chosen(each, axis), name=name)

        made = bb.call_te(numbers, data, *tensors, primfunc_name_hint=name)
        bb.update_func(made.args[0], bb.get()[made.args[0]].with_attr("op_pattern", OPAQUE))
        return bb.emit(made)

    steps = [emit("steps", _step, strides)] if known is None else []
    firsts = emit("firsts", _first, begins, *steps)
    shape = bb.emit(relax.op.tensor_to_shape(emit("extents", _count, firsts, ends, *steps)))
    extents = [tirx.Var(f"extent{axis}", "int64") for axis in range(rank)]
    bb.match_cast(shape, relax.ShapeType(extents))

    def take(x: te.Tensor, *read: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> Any:
            places = []
            for axis, i in enumerate(index):
                first, step = of_axis(x, axis, read)
                places.append(first + i * step)
            return x(*places)

        return te.compute(extents, element, name="slice")

    return bb.call_te(take, data, firsts, *steps, primfunc_name_hint="dynamic_strided_slice")


def _step(extent: Any, stride: Any) -> Any:
    """A stride no longer than its axis, which is as good as any longer one, and not 0."""
    most = tirx.max(extent, _ONE)
    stride = tirx.max(tirx.min(stride, most), -most)
    return tirx.Select(stride == _ZERO, _ONE, stride)


def _first(extent: Any, begin: Any, step: Any) -> Any:
    """Where a slice begins: on the axis, or behind it where it goes forward."""
    return tirx.max(tirx.min(_from_the_first(begin, extent), tirx.Select(step < 0, extent - 1, extent)), _ZERO)


def _last(extent: Any, end: Any, step: Any) -> Any:
    """Where a slice ends: behind its last element, or before it where it goes backward."""
    lowest, highest = tirx.Select(step < 0, -_ONE, _ZERO), tirx.Select(step < 0, extent - 1, extent)
    return tirx.max(tirx.min(_from_the_first(end, extent), highest), lowest)


def _from_the_first(index: Any, extent: Any) -> Any:
    return tirx.Select(index < 0, index + extent, index)


def _count(extent: Any, first: Any, end: Any, step: Any) -> Any:
    """How many elements there are between two places; on an axis without any there are none."""
    last = _last(extent, end, step)
    far = tirx.Select(step < 0, first - last, last - first)
    size = tirx.Select(step < 0, -step, step)
    return tirx.min(tirx.floordiv(tirx.max(far, _ZERO) + size - 1, size), extent)


def _chosen(numbers: Sequence[Any], place: tirx.Var) -> Any:
    """The number of a place."""
    chosen = numbers[-1]
    for other in reversed(range(len(numbers) - 1)):
        chosen = tirx.Select(place == other, numbers[other], chosen)
    return chosen
