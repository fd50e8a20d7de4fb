"""Sizes of a sliding window's tiling: the register tile, the cut into rTasks, the scratch image."""

import math
from dataclasses import dataclass

from ....kernel import Pack
from .form import Window

CHANNELS_AT_ONCE = 32
"""Channels whose pixels stay in the first-level cache while all taps of the kernel pass over them."""

SAME_LINES, APART = 256, 80
"""Channels at multiples of 1 KB share few lines of the first-level cache; with five lines in between they do not."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tiling of a window.

    Parameters
    ----------
    lanes : int
        Elements of a vector.
    filters, vectors : int
        The register tile: so many filters, and so many vectors of pixels.
    group_parts, filter_parts, row_parts : int
        Into how many rTasks groups, blocks of filters of a group, and rows are cut.
    """

    lanes: int
    filters: int
    vectors: int
    group_parts: int
    filter_parts: int
    row_parts: int

    @property
    def pixels(self) -> int:
        """Pixels of the register tile."""
        return self.lanes * self.vectors


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes that follow from a window and its tile.

    Parameters
    ----------
    rows : int
        Rows of the output that an rTask computes.
    phases : pair of int
        Into how many the image's rows and columns are cut.
    height, width : int
        Of one phase in scratch.
    steps : int
        Register tiles along the pixels, in one rTask.
    blocks : int
        Blocks of filters in a group.
    inner : int
        Channels of an innermost reduction loop.
    """

    rows: int
    phases: tuple[int, int]
    height: int
    width: int
    steps: int
    blocks: int
    inner: int

    @staticmethod
    def of(window: Window, tile: Tile) -> "Layout":
        """Compute the sizes."""
        (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.stride, window.dilation
        blocks = -(-window.filters // tile.filters)
        inner = max(d for d in range(1, CHANNELS_AT_ONCE + 1) if window.channels % d == 0)
        inner = window.channels if inner < min(8, window.channels) else inner
        if window.flat:
            steps = -(-window.rows * window.columns // tile.pixels)
            return Layout(0, (1, 1), 0, 0, -(-steps // tile.row_parts), blocks, inner)
        rows = -(-window.rows // tile.row_parts)
        phases = (max(r * dy % sy for r in range(kh)) + 1, max(r * dx % sx for r in range(kw)) + 1)
        more = window.phases.extra if window.phases else (0, 0)
        width = window.columns + (kw - 1) * dx // sx + more[1]
        steps = -(-((rows - 1) * width + window.columns) // tile.pixels)
        return Layout(rows, phases, rows + (kh - 1) * dy // sy + more[0], width, steps, blocks, inner)

    @property
    def phase(self) -> int:
        """Elements from one phase of a channel to the next."""
        size = self.height * self.width
        return size + APART if size % SAME_LINES == 0 else size

    @property
    def plane(self) -> int:
        """Elements of a channel in scratch, all phases."""
        return math.prod(self.phases) * self.phase

    def scratch(self, window: Window, tile: Tile) -> int:
        """Elements of the scratch image; the last tile reads past the image's end."""
        return window.channels * self.plane + tile.pixels + self.width


def pack_of(window: Window, tile: Tile, layout: Layout) -> Pack:
    """The weights as the inner loop reads them.

    Block of filters, block of channels, taps, channel, filter; before these the phases of a transposed convolution.
    """
    outer = window.channels // layout.inner
    if window.phases is None:
        kernel, whole = window.kernel[-window.rank :], window.groups * layout.blocks
        taps = tuple(4 + d for d in range(window.rank))
        padded = (whole * tile.filters, window.channels, *kernel)
        return Pack(padded, (whole, tile.filters, outer, layout.inner, *kernel), (0, 2, *taps, 3, 1))
    cut = list(zip(window.kernel, window.phases.stride, strict=True))[-window.rank :]
    padded = (window.channels, layout.blocks * tile.filters, *(k * s for k, s in cut))
    split = (outer, layout.inner, layout.blocks, tile.filters, *(n for pair in cut for n in pair))
    taps, phases = range(4, len(split), 2), range(5, len(split), 2)
    return Pack(padded, split, (*phases, 2, 0, *taps, 1, 3))
