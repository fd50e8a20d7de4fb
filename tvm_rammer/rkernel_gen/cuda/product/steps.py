"""How the steps of K cover a product's summed axes, and how constant weights are packed for them."""

import math
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ....kernel import Pack
from ..threads import number
from .parts import Product, Values
from .problem import padded
from .tile import GemmTile

MOST_PADDED = 1.25
"""Work on padding that steps of whole positions may add, relative to what they are compared with."""


@dataclass(frozen=True, slots=True)
class Covering:
    """How many steps of K there are, and what a step is a part of: the terms of one position of the window, those of
    some positions that follow each other in a row of the window, or all terms as one axis.

    Parameters
    ----------
    taps, channels : int
        Positions of the window, and terms at each.
    depth : int
        Terms of a step.
    columns : int
        Positions in a row of the window.
    """

    taps: int
    channels: int
    depth: int
    columns: int = 1

    @property
    def by_rows(self) -> bool:
        """Whether a step has several whole positions of one row: where channels are few, and hardly any is padded.

        The place in the row of what a thread loads is then the same in all steps, but for where the step begins.
        """
        several = self.columns > 1 and self.depth > self.channels and self.depth % self.channels == 0
        return several and MOST_PADDED * self.columns >= padded(self.columns, self.positions)

    @property
    def positions(self) -> int:
        """Whole positions of the window in a step."""
        return self.depth // self.channels

    @property
    def fused(self) -> bool:
        """Whether positions and channels are one axis: where channels alone would be mostly padding."""
        separate = padded(self.channels, self.depth) * self.taps
        mostly = separate > MOST_PADDED * padded(self.channels * self.taps, self.depth)
        return self.taps > 1 and not self.by_rows and mostly

    @property
    def per_tap(self) -> int:
        """Steps in a row of the same position of the window, or of the same row."""
        if self.by_rows:
            return padded(self.columns, self.positions) // self.positions
        return padded(self.channels * (self.taps if self.fused else 1), self.depth) // self.depth

    @property
    def count(self) -> int:
        """All steps."""
        if self.by_rows:
            return self.per_tap * (self.taps // self.columns)
        return self.per_tap * (1 if self.fused else self.taps)

    @property
    def missing(self) -> int:
        """Places of the first step that come before the first term, so that all others are whole: without a window.

        A thread then loads at addresses that differ by constants. With a window the last step of each position has
        places past the last channel, and addresses that stop there.
        """
        return self.per_tap * self.depth - self.channels if self.taps == 1 else 0

    @property
    def goes_past(self) -> bool:
        """Whether some step has places past the last channel, position of the row, or term."""
        if self.by_rows:
            return self.columns % self.positions != 0
        return not self.missing and self.channels * (self.taps if self.fused else 1) % self.depth != 0


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of K of a product, `depth` terms each."""

    product: Product
    depth: int

    @property
    def covering(self) -> Covering:
        """How many there are, and of what."""
        product = self.product
        return Covering(product.taps.extent, product.channels.extent, self.depth, product.taps.columns.extent)

    @property
    def fused(self) -> bool:
        """Whether positions of the window and channels are one axis."""
        return self.covering.fused

    @property
    def count(self) -> int:
        """All steps."""
        return self.covering.count

    @property
    def missing(self) -> int:
        """Places of the first step that come before the first term."""
        return self.covering.missing

    def at(self, step: Expr, k: Expr) -> tuple[dict[tirx.Var, Expr], Expr | None]:
        """The summed axes at a place of a step; and whether there is such a place, None where it always is."""
        taps, channels, covering = self.product.taps, self.product.channels, self.covering
        per_tap = number(covering.per_tap)
        if covering.by_rows:
            column = tirx.floormod(step, per_tap) * covering.positions + tirx.floordiv(k, number(channels.extent))
            values = taps.rows.at(tirx.floordiv(step, per_tap)) | taps.columns.at(column)
            values |= channels.at(tirx.floormod(k, number(channels.extent)))
            return values, column < covering.columns if covering.goes_past else None
        if covering.fused:
            term = step * self.depth + k
            terms = channels.extent * taps.extent
            values = taps.at(tirx.floordiv(term, number(channels.extent)))
            values |= channels.at(tirx.floormod(term, number(channels.extent)))
        elif self.missing:
            place = step * self.depth + k
            term = place - self.missing
            if isinstance(step, tirx.IntImm):
                term = tirx.max(term, number(0))
            return taps.at(number(0)) | channels.at(term), place >= self.missing
        else:
            term = tirx.floormod(step, per_tap) * self.depth + k
            terms = channels.extent
            values = taps.at(tirx.floordiv(step, per_tap)) | channels.at(term)
        return values, term < terms if covering.goes_past else None

    def packed_element(self, packed: tirx.Var, batch: Values, step: Expr, k: Expr, j: Expr) -> Expr:
        """An element of packed weights, whose last axis is J, and all others are S and then K.

        Where positions and channels are one axis, its last step may go past its end: the last row is read again there.
        """
        rows = [int(n) for n in packed.shape][:-1]
        count = math.prod(rows) // self.product.s.extent
        row = step * self.depth + k
        if self.fused:
            row = tirx.min(row, tirx.IntImm("int64", count - 1))
        if self.product.s.extent > 1:
            at: Expr = number(0)
            for var, extent in zip(self.product.s.variables, self.product.s.extents, strict=True):
                at = at * extent + batch[var]
            row = at * count + row
        places: list[Expr] = []
        for extent in reversed(rows[1:]):
            places.insert(0, tirx.floormod(row, number(extent)))
            row = tirx.floordiv(row, number(extent))
        return packed[(row, *places, j)] if rows else packed[j]


def pack_of(product: Product, tile: GemmTile, weight: tirx.Var) -> Pack | None:
    """How a parameter is packed that is B and a constant: S by K by J, in whole tiles; None where it cannot be."""
    value = product.operands[1].value
    if not isinstance(value, TensorLoad) or not value.source.same_as(weight):
        return None
    groups = (product.s, product.taps, product.channels, product.j)
    order = [var for axes in groups for var in axes.variables]
    extents = [extent for axes in groups for extent in axes.extents]
    large = [var for var, extent in zip(order, extents, strict=True) if extent > 1]
    dims = {index: d for d, index in enumerate(value.indices) if isinstance(index, tirx.Var)}
    shape = [int(n) for n in weight.shape]
    moving = [d for d, n in enumerate(shape) if n > 1]
    if not all(var in dims for var in large) or len(moving) > len(large):
        return None
    j_axes = [v for v in product.j.variables if v in large]
    channel_axes = [v for v in product.channels.variables if v in large]
    covering = Steps(product, tile.k).covering
    new = list(shape)
    if len(j_axes) != 1 or shape[dims[j_axes[0]]] != product.j.extent:
        return None
    new[dims[j_axes[0]]] = padded(product.j.extent, tile.j)
    if covering.by_rows:
        new[dims[product.taps.columns.variables[0]]] = covering.per_tap * covering.positions
    elif not covering.fused and covering.per_tap * tile.k != product.channels.extent:
        if len(channel_axes) != 1:
            return None
        new[dims[channel_axes[0]]] = covering.per_tap * tile.k
    chosen = [dims[v] for v in large]
    axes = [*(d for d in range(len(shape)) if d not in chosen), *chosen]
    missing = covering.missing
    before = [missing if d == dims[channel_axes[0]] else 0 for d in range(len(shape))] if missing else []
    return Pack(tuple(new), tuple(new), tuple(axes), before=tuple(before))
