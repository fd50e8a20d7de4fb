"""The results of a block of filters as plain sums, for pixels that the algorithm cannot transform: slow, and seldom."""

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ...analysis.work import shape_of
from ..loops import loop, sequence
from ..window.problem import Window
from .layout import WinogradTile


@dataclass(frozen=True, slots=True)
class Block:
    """A block of filters in a step.

    The image, the group, the block's first filter, its number among the weights', and the first row of tiles.
    """

    n: Expr
    group: Expr
    first: Expr
    block: Expr
    row: Expr


@dataclass(frozen=True, slots=True)
class Sums:
    """Generates them.

    Parameters
    ----------
    window : Window
    tile : WinogradTile
    weight : tirx.Buffer
        Transformed and packed.
    total : tirx.Buffer
        Scratch of two dimensions, of which one element is used.
    """

    window: Window
    tile: WinogradTile
    weight: tirx.Buffer
    total: tirx.Buffer

    def row(self, at: Block, f: Expr, y: Expr) -> tirx.Stmt:
        """Compute and store a row of the results of a filter of a block."""
        window, total, zero = self.window, self.total, tirx.FloatImm("float32", 0.0)

        def element(x: Expr) -> tirx.Stmt:
            return sequence([
                tirx.BufferStore(total, zero, [0, 0]),
                loop(window.channels, lambda c: sequence(
                    [self._add(at, f, c, y, x, ky, kx) for ky in range(3) for kx in range(3)])),
                window.store((at.n, at.first + f, y, x), total[0, 0]),
            ])  # fmt: skip

        return loop(window.columns, element)

    def _add(self, at: Block, f: Expr, c: Expr, y: Expr, x: Expr, ky: int, kx: int) -> tirx.Stmt:
        """Add the product of a tap, if its pixel is one of the image."""
        window, total = self.window, self.total
        height, width = shape_of(window.data)[2:]
        y, x = y + (ky - window.padding[0]), x + (kx - window.padding[1])
        pixel = window.data[at.n, at.group * window.channels + c, y, x]
        added = tirx.BufferStore(total, total[0, 0] + pixel * self._tap(at.block, c, f, ky, kx), [0, 0])
        return tirx.IfThenElse(tirx.all(y >= 0, y < height, x >= 0, x < width), added, None)

    def _tap(self, block: Expr, c: Expr, f: Expr, ky: int, kx: int) -> Expr:
        """A tap of a filter, of its transformed ones."""
        by = self.tile.by
        total: Expr = tirx.FloatImm("float32", 0.0)
        for y, a in enumerate(by.taps[ky]):
            for x, b in enumerate(by.taps[kx]):
                if a * b:
                    value = self.weight[block, y * by.points + x, c, f]
                    total = total + value * tirx.FloatImm("float32", a * b)
        return total
