"""Pad by widths that only the data say, as to a multiple of 32; what is less than nothing is cut off."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ...passes.indices.index_guard import Relation
from ...passes.legalization.pads import mirrored_place
from .guards import between, related
from .names import entries, named_extents, vector_of

_WIDEST = 2**31


def pad_by_data(
    bb: relax.BlockBuilder, data: relax.Expr, pads: relax.Expr, axes: Sequence[int], attributes: Mapping[str, Any],
    fill: relax.Expr | None = None,
) -> relax.Expr:  # fmt: skip
    """A tensor between edges of computed widths.

    Parameters
    ----------
    bb : relax.BlockBuilder
    data : relax.Expr
    pads : relax.Expr
        Of each of the axes the width before, then of each the one after; int64.
    axes : sequence of int
        None is negative.
    attributes : mapping
        Of the node.
    fill : relax.Expr, optional
        What edges consist of in the mode "constant"; 0 if it is left out.

    Raises
    ------
    ValueError
        The pads are of another number of axes.
    """
    mode, rank, count = attributes.get("mode", b"constant"), data.ty.ndim, 2 * len(axes)
    known = entries(bb, pads, count)
    if tuple(pads.ty.shape) != (count,):
        raise ValueError(f"{pads.ty.shape} pads for {len(axes)} axes")
    pads = between(bb, pads, (-_WIDEST, _WIDEST - 1), attributes, "got pads that need more than 32 bits")
    same = [axis not in axes or {*known[axes.index(axis) :: len(axes)]} == {0} for axis in range(rank)]
    before, after = (_of_all_axes(bb, pads, axes, rank, place) for place in (0, len(axes)))
    sizes, none = bb.emit(vector_of(data.ty.shape)), relax.const(np.zeros(rank, np.int64), "int64")
    fixed = [size if still else None for size, still in zip(data.ty.shape, same, strict=True)]
    cut = relax.op.add(relax.op.minimum(before, none), relax.op.minimum(after, none))
    inner = bb.emit(relax.op.maximum(relax.op.add(sizes, cut), none))
    outer = named_extents(bb, bb.emit(relax.op.add(sizes, relax.op.add(before, after))), fixed)
    if mode != b"constant":
        one, left = tirx.const(1, "int64"), named_extents(bb, inner, fixed)
        pairs = [(tirx.min(b, one), a) for a, b, still in zip(left, outer, same, strict=True) if not still]
        what = "got pads that leave nothing to make an edge of"
        inner = related(bb, inner, pairs, Relation.AT_MOST, attributes, what)
    fill = relax.const(0, data.ty.dtype) if fill is None else fill
    return bb.emit_te(_padded, data, before, inner, fill, outer, same, str(mode, "utf-8"))


def _of_all_axes(bb: relax.BlockBuilder, pads: relax.Expr, axes: Sequence[int], rank: int, first: int) -> relax.Var:
    """Widths of each axis, of those that are given from a place on."""
    zero = relax.const(np.zeros(1, np.int64), "int64")
    chosen = [first + axes.index(axis) if axis in axes else 2 * len(axes) for axis in range(rank)]
    index = relax.const(np.array(chosen, np.int64), "int64")
    return bb.emit(relax.op.take(bb.emit(relax.op.concat([pads, zero], 0)), index, 0))


def _edge(place: tirx.Expr, size: tirx.Expr) -> tirx.Expr:
    return te.max(te.min(place, size - 1), tirx.const(0, "int64"))


def _around(place: tirx.Expr, size: tirx.Expr) -> tirx.Expr:
    return tirx.floormod(place, te.max(size, tirx.const(1, "int64")))


_PLACES: Mapping[str, Callable[[tirx.Expr, tirx.Expr], tirx.Expr]] = {
    "edge": _edge,
    "reflect": mirrored_place,
    "wrap": _around,
}
"""By the mode, which element is at a place that may be outside of so many."""


def _padded(
    data: te.Tensor,
    before: te.Tensor,
    inner: te.Tensor,
    fill: te.Tensor,
    outer: Sequence[tirx.Expr],
    same: Sequence[bool],
    mode: str,
) -> te.Tensor:
    """What is left of each axis, `inner` elements, and what is around it; some axes stay the same."""
    none, place = tirx.const(0, "int64"), _PLACES.get(mode)

    def element(*at: tirx.Expr) -> tirx.Expr:
        there, inside = list(at), tirx.const(True, "bool")
        for axis, still in enumerate(same):
            if not still:
                width, size = (vector(tirx.const(axis, "int64")) for vector in (before, inner))
                among = at[axis] - te.max(width, none)
                inside = tirx.all(inside, among >= none, among < size)
                there[axis] = (among if place is None else place(among, size)) - te.min(width, none)
        found = data(*there)
        return found if place is not None else tirx.if_then_else(inside, found, fill(*[0] * fill.ndim))

    return te.compute(outer, element, name="padded")
