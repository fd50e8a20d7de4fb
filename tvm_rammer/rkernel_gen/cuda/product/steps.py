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


@dataclass(frozen=True, slots=True)
class Covering:
    """How many steps of K there are: some for each position of the window, or all terms are one axis.

    Parameters
    ----------
    taps, channels : int
        Positions of the window, and terms at each.
    depth : int
        Terms of a step.
    """

    taps: int
    channels: int
    depth: int

    @property
    def fused(self) -> bool:
        """Whether positions and channels are one axis: where channels alone would be mostly padding."""
        separate = padded(self.channels, self.depth) * self.taps
        return self.taps > 1 and 4 * separate > 5 * padded(self.channels * self.taps, self.depth)

    @property
    def per_tap(self) -> int:
        """Steps in a row of the same position of the window."""
        return padded(self.channels * (self.taps if self.fused else 1), self.depth) // self.depth

    @property
    def count(self) -> int:
        """All steps."""
        return self.per_tap * (1 if self.fused else self.taps)

    @property
    def missing(self) -> int:
        """Places of the first step that come before the first term, so that all others are whole: without a window.

        A thread then loads at addresses that differ by constants. With a window the last step of each position has
        places past the last channel, and addresses that stop there.
        """
        return self.per_tap * self.depth - self.channels if self.taps == 1 else 0


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of K of a product, `depth` terms each."""

    product: Product
    depth: int

    @property
    def covering(self) -> Covering:
        """How many there are."""
        return Covering(self.product.taps.extent, self.product.channels.extent, self.depth)

    @property
    def fused(self) -> bool:
        """Whether positions of the window and channels are one axis."""
        return self.covering.fused

    @property
    def per_tap(self) -> int:
        """Steps in a row of the same position of the window."""
        return self.covering.per_tap

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
        taps, channels = self.product.taps, self.product.channels
        if self.fused:
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
            term = tirx.floormod(step, number(self.per_tap)) * self.depth + k
            terms = channels.extent
            values = taps.at(tirx.floordiv(step, number(self.per_tap))) | channels.at(term)
        return values, term < terms if terms % self.depth else None

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
    steps = Steps(product, tile.k)
    new = list(shape)
    if len(j_axes) != 1 or shape[dims[j_axes[0]]] != product.j.extent:
        return None
    new[dims[j_axes[0]]] = padded(product.j.extent, tile.j)
    if not steps.fused and steps.per_tap * tile.k != product.channels.extent:
        if len(channel_axes) != 1:
            return None
        new[dims[channel_axes[0]]] = steps.per_tap * tile.k
    chosen = [dims[v] for v in large]
    axes = [*(d for d in range(len(shape)) if d not in chosen), *chosen]
    before = [steps.missing if d == dims[channel_axes[0]] else 0 for d in range(len(shape))] if steps.missing else []
    return Pack(tuple(new), tuple(new), tuple(axes), before=tuple(before))
