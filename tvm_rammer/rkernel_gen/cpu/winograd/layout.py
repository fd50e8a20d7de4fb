"""Sizes of a tiling by Winograd's algorithm: the tiles, the split into rTasks, the scratch arrays."""

import math
from dataclasses import dataclass

from ....kernel import Pack
from ..window.ahead import LINE
from ..window.problem import Window
from .matrices import TRANSFORMATIONS, Transformations

KEPT_BYTES = 384 << 10
"""Bytes of transformed pixels that a core's own cache keeps beside the weights that pass through it."""
KEPT_OF_32, FEW_WEIGHTS = 128 << 10, 2 << 20
"""The same with vectors of up to 32 bytes, whose processors have smaller caches; but only where the transformed
weights, which each step reads, are at most so many bytes."""


@dataclass(frozen=True, slots=True)
class WinogradTile:
    """The register tile of the products, and how the work is split into rTasks.

    Parameters
    ----------
    simd : int
        Elements of a vector.
    size : int
        Results of a tile along each axis (`TRANSFORMATIONS`).
    filters, vectors : int
        Extents of the register tile: filters, and vectors of tiles.
    group_parts, filter_parts, row_parts : int
        Numbers of rTasks that groups, blocks of filters of a group, and rows of tiles are split into.
    """

    simd: int
    size: int
    filters: int
    vectors: int
    group_parts: int
    filter_parts: int
    row_parts: int

    @property
    def by(self) -> Transformations:
        """The transformations."""
        return TRANSFORMATIONS[self.size]


@dataclass(frozen=True, slots=True)
class WinogradLayout:
    """Sizes that follow from a window and its tile.

    Parameters
    ----------
    tile_rows, tile_columns : int
        Tiles of the output, the last ones beyond its end.
    rows : int
        Rows of tiles of an rTask; the last rTask's are moved back to end with the image.
    step : int
        Rows of tiles whose pixels are transformed at once.
    blocks : int
        Blocks of filters in a group.
    row_vectors : int
        Vectors of a row of tiles.
    tiles : int
        Register tiles along the tiles of a step.
    line : int
        Distance in scratch from one channel's transformed pixels, or one filter's products, to the next.
    """

    tile_rows: int
    tile_columns: int
    rows: int
    step: int
    blocks: int
    row_vectors: int
    tiles: int
    line: int

    @staticmethod
    def of(window: Window, tile: WinogradTile) -> "WinogradLayout":
        """Compute the sizes."""
        tile_rows, tile_columns = -(-window.rows // tile.size), -(-window.columns // tile.size)
        rows = -(-tile_rows // tile.row_parts)
        row_bytes = tile.by.products * window.channels * tile_columns * 4
        weights = tile.by.products * window.channels * window.filters * 4 // tile.filter_parts
        kept = KEPT_OF_32 if tile.simd < LINE and weights <= FEW_WEIGHTS else KEPT_BYTES
        steps = -(-rows // max(1, min(rows, kept // row_bytes)))
        step = -(-rows // steps)
        row_vectors = -(-tile_columns // tile.simd)
        tiles = -(-step * tile_columns // (tile.vectors * tile.simd))
        written = (step - 1) * tile_columns + row_vectors * tile.simd
        lines = -(-max(written, tiles * tile.vectors * tile.simd) // LINE) | 1  # odd: they do not conflict in the cache
        return WinogradLayout(
            tile_rows, tile_columns, rows, step, -(-window.filters // tile.filters), row_vectors, tiles, lines * LINE
        )

    @property
    def steps(self) -> int:
        """Steps of an rTask; the last one is moved back to end with its rows."""
        return -(-self.rows // self.step)


def pack_of(window: Window, tile: WinogradTile, layout: WinogradLayout) -> Pack:
    """The transformed weights as the inner loop reads them: block of filters, product, channel, filter."""
    blocks, products = window.groups * layout.blocks, tile.by.products
    padded = (blocks * tile.filters, window.channels, tile.by.points, tile.by.points)
    split = (blocks, tile.filters, window.channels, products)
    return Pack(padded, split, (0, 3, 2, 1), tile.by.weight)


def weight_bytes(window: Window, tile: WinogradTile, layout: WinogradLayout) -> int:
    """Bytes of all transformed weights."""
    return math.prod(pack_of(window, tile, layout).padded) * 4
