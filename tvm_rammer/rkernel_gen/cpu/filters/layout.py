"""Sizes of a tiling with filters in vectors: the register tile, the split into rTasks, the scratch image."""

from dataclasses import dataclass

from ....kernel import Pack
from ..window.layout import channels_inside
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
        The pixels of the register tile. Several rows are whole ones. No rows: as many pixels as there are columns, one
        after the other, which may go on in the next row. An image that is read as one long row (`Window.one_row`) has
        tiles of one row.
    group_parts, filter_parts, row_parts : int
        Numbers of rTasks that groups, blocks of filters of a group, and rows (where flat: pixels) are split into.
    sum_parts : int
        Blocks of channels that an rTask adds one after the other, each for all of its results: the weights of a block
        stay in a cache meanwhile (Goto and van de Geijn, TOMS 2008, section 4).
    panels : int
        1: the pixels of a flat image are copied to scratch, one register tile after the other, though they could be
        read in place. So they come from beyond the core's cache once, not for each block of filters.
    """

    simd: int
    vectors: int
    rows: int
    columns: int
    group_parts: int
    filter_parts: int
    row_parts: int
    sum_parts: int = 1
    panels: int = 0

    @property
    def filters(self) -> int:
        """Filters of the register tile."""
        return self.simd * self.vectors

    @property
    def pixels(self) -> int:
        """Pixels of the register tile."""
        return max(1, self.rows) * self.columns

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
        Register tiles along them; one row of tiles where these go on in the next row. The last one is moved back to
        end with the image.
    blocks : int
        Blocks of filters in a group.
    channels : int
        Channels of a block of the sum.
    inner : int
        Channels of the innermost loop.
    copied : bool
        Whether the image is copied to scratch: it is padded, its channels conflict in the first-level cache, or its
        windows are 1x1 and either strided or read, for many blocks of filters, as short parts of cache lines, or the
        tile says so. The copy for windows of 1x1 has one register tile after the other.
    height, width : int
        Rows of the image that an rTask reads, and their length in scratch. There the same row of all channels lies
        together: an innermost loop, which is one over channels, reads a page or two, however large the image is.
    together : int
        Register tiles that use a block of weights before the next one is loaded: of a flat image that is copied only
        those that are in scratch at once, else all of the rTask.
    scratch : int
        Elements of the scratch image.
    """

    rows: int
    columns: int
    row_tiles: int
    column_tiles: int
    blocks: int
    channels: int
    inner: int
    copied: bool
    height: int
    width: int
    together: int
    scratch: int

    @staticmethod
    def of(window: Window, tile: FilterTile) -> "FilterLayout":
        """Compute the sizes."""
        blocks, channels = -(-window.filters // tile.filters), window.channels // tile.sum_parts
        inner = channels_inside(channels)
        if window.one_row:
            total = window.rows * window.columns
            tiles = -(-total // tile.columns)
            per_part = -(-tiles // tile.row_parts)
            tile_bytes, kept = channels * tile.columns * 4, KEPT_BYTES.get(tile.simd, KEPT_BYTES_OF_32)
            parts = 1 if per_part * tile_bytes <= kept else -(-per_part // max(1, kept // 2 // tile_bytes))
            short = tile.columns <= SHORT_PIXELS and blocks // tile.filter_parts >= MANY_BLOCKS
            copied = not window.flat or window.conflicting or short or tile.panels == 1
            together = -(-per_part // parts) if copied else per_part
            return FilterLayout(
                rows=1, columns=total, row_tiles=1, column_tiles=per_part, blocks=blocks, channels=channels,
                inner=inner, copied=copied, height=1, width=total, together=together,
                scratch=channels * tile.columns * together if copied else 0,
            )  # fmt: skip
        rows = -(-window.rows // tile.row_parts)
        (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.stride, window.dilation
        height, width = (rows - 1) * sy + (kh - 1) * dy + 1, (window.columns - 1) * sx + (kw - 1) * dx + 1
        copied = not window.inside or window.conflicting
        columns = rows * window.columns if tile.rows == 0 else window.columns
        row_tiles, column_tiles = -(-rows // tile.rows) if tile.rows else 1, -(-columns // tile.columns)
        return FilterLayout(
            rows=rows, columns=columns, row_tiles=row_tiles, column_tiles=column_tiles, blocks=blocks,
            channels=channels, inner=inner, copied=copied, height=height, width=width,
            together=row_tiles * column_tiles, scratch=channels * height * width if copied else 0,
        )  # fmt: skip

    @property
    def tiles(self) -> int:
        """Register tiles of an rTask for a block of filters."""
        return self.row_tiles * self.column_tiles


def pack_of(window: Window, tile: FilterTile, layout: FilterLayout) -> Pack:
    """The weights as the inner loop reads them.

    The order is: block of the sum, block of filters, block of channels, taps, channel, filter.
    """
    kernel, blocks = window.kernel[-window.rank :], window.groups * layout.blocks
    padded = (blocks * tile.filters, window.channels, *kernel)
    split = (blocks, tile.filters, tile.sum_parts, layout.channels // layout.inner, layout.inner, *kernel)
    return Pack(padded, split, (2, 0, 3, *range(5, len(split)), 4, 1))


def weight_bytes(window: Window, tile: FilterTile, layout: FilterLayout) -> int:
    """Bytes of all packed weights."""
    return window.groups * layout.blocks * tile.filters * window.taps * 4
