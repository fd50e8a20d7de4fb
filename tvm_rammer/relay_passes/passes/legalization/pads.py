"""Mirrored edges of any width: an image that is narrower than its edge is mirrored again."""

from collections.abc import Sequence

from tvm import relax, te, tirx, topi
from tvm.ir import Call
from tvm.tirx import Expr

from .stock import Legalization, stock


def pads() -> dict[str, Legalization]:
    """Legalizations of mirrored edges by the operator's name; TVM's read outside of a tensor that is too narrow."""
    return {"relax.nn.pad": _legalize}


def _legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    if str(call.attrs.pad_mode) != "reflect":
        return stock(bb, call)
    widths = [int(width) for width in call.attrs.pad_width]
    return bb.call_te(mirrored, call.args[0], widths[::2], widths[1::2], primfunc_name_hint="reflect_pad")


def mirrored(data: te.Tensor, before: Sequence[int], after: Sequence[int]) -> te.Tensor:
    """A tensor between its mirrored edges, whose outermost elements are not repeated.

    Parameters
    ----------
    data : te.Tensor
    before, after : sequence of int
        Elements that are added to each axis; none is negative.
    """
    if all(_fits(size, b) and _fits(size, a) for size, b, a in zip(data.shape, before, after, strict=True)):
        return topi.nn.mirror_pad(data, before, after, "REFLECT", name="MirrorPadInput")

    def at(*places: Expr) -> Expr:
        shifted = (place - width for place, width in zip(places, before, strict=True))
        return data(*map(mirrored_place, shifted, data.shape))

    shape = [size + b + a for size, b, a in zip(data.shape, before, after, strict=True)]
    return te.compute(shape, at, name="mirrored", tag="injective,pad")


def _fits(size: Expr, width: int) -> bool:
    """Whether an edge is surely no wider than what it mirrors."""
    return width == 0 or (isinstance(size, tirx.IntImm) and width < int(size))


def mirrored_place(place: Expr, size: Expr) -> Expr:
    """Which of so many elements is at a place that may be outside of them."""
    period = 2 * (size - 1)
    there = tirx.floormod(place, te.max(period, tirx.const(1, "int64")))
    return te.max(te.min(there, period - there), tirx.const(0, "int64"))
