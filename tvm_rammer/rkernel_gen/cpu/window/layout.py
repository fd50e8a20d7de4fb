"""Sizes of a sliding window's tiling: the register tile, the split into rTasks, the scratch image."""

import math
from dataclasses import dataclass
from functools import cache

from ....kernel import Pack
from .problem import CONFLICT_ELEMENTS, Window

MAX_INNER_CHANNELS = 32
"""Channels of an innermost loop, at most: their pixels stay in the first-level cache for all taps of the kernel."""

PADDING_ELEMENTS = 80
"""Elements between channels that would conflict in the first-level cache: five cache lines."""


@dataclass(frozen=True, slots=True)
class WindowTile:
    """The register tile of a window, and how the work is split into rTasks.

    Parameters
    ----------
    simd : int
        Elements of a vector.
    filters, vectors : int
        Extents of the register tile: filters, and vectors of pixels.
    group_parts, filter_parts, row_parts : int
        Numbers of rTasks that groups, blocks of filters of a group, and rows are split into.
    """

    simd: int
    filters: int
    vectors: int
    group_parts: int
    filter_parts: int
    row_parts: int

    @property
    def pixels(self) -> int:
        """Pixels of the register tile."""
        return self.simd * self.vectors


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes that follow from a window and its tile.

    Parameters
    ----------
    rows : int
        Rows of the output that an rTask computes.
    phases : pair of int
        Numbers of phases of the image's rows and columns.
    height, width : int
        Extents of one phase in scratch.
    steps : int
        Register tiles along the pixels, in one rTask.
    blocks : int
        Blocks of filters in a group.
    inner : int
        Channels of the innermost reduction loop.
    """

    rows: int
    phases: tuple[int, int]
    height: int
    width: int
    steps: int
    blocks: int
    inner: int

    @staticmethod
    def of(window: Window, tile: WindowTile) -> "Layout":
        """Compute the sizes."""
        (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.stride, window.dilation
        blocks = -(-window.filters // tile.filters)
        inner = channels_inside(window.channels)
        if window.flat:
            steps = -(-window.rows * window.columns // tile.pixels)
            return Layout(0, (1, 1), 0, 0, -(-steps // tile.row_parts), blocks, inner)
        rows = -(-window.rows // tile.row_parts)
        phases = (max(r * dy % sy for r in range(kh)) + 1, max(r * dx % sx for r in range(kw)) + 1)
        extra = window.phases.extra if window.phases else (0, 0)
        width = window.columns + (kw - 1) * dx // sx + extra[1]
        steps = -(-((rows - 1) * width + window.columns) // tile.pixels)
        return Layout(rows, phases, rows + (kh - 1) * dy // sy + extra[0], width, steps, blocks, inner)

    @property
    def phase(self) -> int:
        """Distance in elements from one phase of a channel to the next."""
        return plane_of(self.height * self.width)

    @property
    def plane(self) -> int:
        """Elements of a channel in scratch, all phases."""
        return math.prod(self.phases) * self.phase

    def scratch(self, window: Window, tile: WindowTile) -> int:
        """Elements of the scratch image; the last tile reads past the image's end."""
        return window.channels * self.plane + tile.pixels + self.width


@cache  # asked for each tiling
def channels_inside(channels: int) -> int:
    """Channels of the innermost reduction loop: a divisor of them."""
    inner = max(d for d in range(1, MAX_INNER_CHANNELS + 1) if channels % d == 0)
    return channels if inner < min(8, channels) else inner


def plane_of(size: int) -> int:
    """Distance in elements from one image to the next in scratch, for images of `size` elements."""
    return size + PADDING_ELEMENTS if size % CONFLICT_ELEMENTS == 0 else size


def pack_of(window: Window, tile: WindowTile, layout: Layout) -> Pack:
    """The weights as the inner loop reads them.

    The order is: phases of a transposed convolution, block of filters, block of channels, taps, channel, filter. The
    blocks of a grouped transposed convolution have two dimensions, group and block.
    """
    outer = window.channels // layout.inner
    if window.phases is None:
        kernel, blocks = window.kernel[-window.rank :], window.groups * layout.blocks
        padded = (blocks * tile.filters, window.channels, *kernel)
        split = (blocks, tile.filters, outer, layout.inner, *kernel)
        return Pack(padded, split, (0, 2, *range(4, len(split)), 3, 1))
    taps = list(zip(window.kernel, window.phases.stride, strict=True))[-window.rank :]
    padded = (window.groups * window.channels, layout.blocks * tile.filters, *(k * s for k, s in taps))
    groups = (window.groups,) if window.groups > 1 else ()
    split = (*groups, outer, layout.inner, layout.blocks, tile.filters, *(n for pair in taps for n in pair))
    first = len(groups)
    tap_axes, phase_axes = range(first + 4, len(split), 2), range(first + 5, len(split), 2)
    axes = (*phase_axes, *range(first), first + 2, first, *tap_axes, first + 1, first + 3)
    return Pack(padded, split, axes)
