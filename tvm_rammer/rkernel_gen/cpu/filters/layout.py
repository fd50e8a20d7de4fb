"""Sizes of a tiling with filters in vectors: the register tile, the split into rTasks, the scratch image."""

import math
from dataclasses import dataclass

from ....kernel import Pack
from ..window.layout import channels_inside, conflicting, plane_of
from ..window.problem import Window

KEPT_BYTES, KEPT_BYTES_OF_32 = {16: 640 << 10}, 256 << 10
"""Bytes that a core's own cache keeps while others pass through it, by the elements of a vector: the second one is of
processors with vectors of 32 bytes or less."""
SHORT_PIXELS, MANY_BLOCKS = 8, 8
"""Pixels of a register tile that are at most half a cache line; and how often they are read where a copy pays."""


@dataclass(frozen=True, slots=True)
class FilterTile:
    """The register tile, and how the work is split into rTasks.

    Parameters
    ----------
    simd : int
        Elements of a vector.
    vectors : int
        Vectors of filters of the register tile.
    rows, columns : int
        The pixels of the register tile. Several rows are whole ones. An image that is read as one long row
        (`Window.one_row`) has tiles of one row.
    group_parts, filter_parts, row_parts : int
        Numbers of rTasks that groups, blocks of filters of a group, and rows (where flat: pixels) are split into.
    """

    simd: int
    vectors: int
    rows: int
    columns: int
    group_parts: int
    filter_parts: int
    row_parts: int

    @property
    def filters(self) -> int:
        """Filters of the register tile."""
        return self.simd * self.vectors

    @property
    def pixels(self) -> int:
        """Pixels of the register tile."""
        return self.rows * self.columns

    @property
    def turned(self) -> int:
        """Pixels that are transposed at once: a power of two."""
        return min(self.simd, 1 << self.pixels.bit_length() - 1)


@dataclass(frozen=True, slots=True)
class FilterLayout:
    """Sizes that follow from a window and its tile.

    Parameters
    ----------
    rows, columns : int
        Pixels of the output that an rTask computes; one row where the image is flat.
    row_tiles, column_tiles : int
        Register tiles along them. The last one is moved back to end with the image.
    blocks : int
        Blocks of filters in a group.
    inner : int
        Channels of the innermost loop.
    copied : bool
        Whether the image is copied to scratch: it is padded, its channels conflict in the first-level cache, or its
        windows are 1x1 and either strided or read, for many blocks of filters, as short parts of cache lines. The copy
        for windows of 1x1 has one register tile after the other.
    height, width, phase : int
        Rows of the image that an rTask reads, their length, and the distance from a channel to the next, in scratch.
    together : int
        Register tiles of a flat image that are in scratch at once: their pixels are used for all filters, one block of
        weights after the other, before the next ones are copied (Goto and van de Geijn, TOMS 2008, section 4).
    """

    rows: int
    columns: int
    row_tiles: int
    column_tiles: int
    blocks: int
    inner: int
    copied: bool
    height: int
    width: int
    phase: int
    together: int

    @staticmethod
    def of(window: Window, tile: FilterTile) -> "FilterLayout":
        """Compute the sizes."""
        blocks, inner = -(-window.filters // tile.filters), channels_inside(window.channels)
        if window.one_row:
            total = window.rows * window.columns
            tiles = -(-total // tile.columns)
            per_part = -(-tiles // tile.row_parts)
            tile_bytes, kept = window.channels * tile.columns * 4, KEPT_BYTES.get(tile.simd, KEPT_BYTES_OF_32)
            parts = 1 if per_part * tile_bytes <= kept else -(-per_part // max(1, kept // 2 // tile_bytes))
            short = tile.columns <= SHORT_PIXELS and blocks // tile.filter_parts >= MANY_BLOCKS
            copied = not window.flat or conflicting(window) or short
            return FilterLayout(
                1, total, 1, per_part, blocks, inner, copied, 1, total, tile.columns, -(-per_part // parts)
            )
        rows = -(-window.rows // tile.row_parts)
        (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.stride, window.dilation
        height, width = (rows - 1) * sy + (kh - 1) * dy + 1, (window.columns - 1) * sx + (kw - 1) * dx + 1
        copied = not window.inside or conflicting(window)
        phase = plane_of(height * width)
        row_tiles, column_tiles = -(-rows // tile.rows), -(-window.columns // tile.columns)
        return FilterLayout(
            rows, window.columns, row_tiles, column_tiles, blocks, inner, copied, height, width, phase, 1
        )

    def scratch(self, window: Window) -> int:
        """Elements of the scratch image."""
        return window.channels * self.phase * self.together if self.copied else 0


def pack_of(window: Window, tile: FilterTile, layout: FilterLayout) -> Pack:
    """The weights as the inner loop reads them: block of filters, block of channels, taps, channel, filter."""
    kernel, blocks = window.kernel[-window.rank :], window.groups * layout.blocks
    padded = (blocks * tile.filters, window.channels, *kernel)
    split = (blocks, tile.filters, window.channels // layout.inner, layout.inner, *kernel)
    return Pack(padded, split, (0, 2, *range(4, len(split)), 3, 1))


def weight_bytes(window: Window, tile: FilterTile, layout: FilterLayout) -> int:
    """Bytes of all packed weights."""
    return math.prod(pack_of(window, tile, layout).padded) * 4
