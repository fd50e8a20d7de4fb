"""How the axes of a convolution or matrix product are shared out: among rTasks, and among register tiles."""

from dataclasses import dataclass

from tvm import s_tir

from ...analysis.anchor import Anchor
from ...analysis.blocks import SPATIAL
from .cover import Cover


@dataclass(frozen=True, slots=True)
class ContractionTile:
    """How channels and rows are split into rTasks, and the register tile of an rTask.

    Parameters
    ----------
    simd : int
        Elements of a vector.
    vectors, pixels : int
        Extents of the register tile.
    channel_parts, row_parts : int
        Numbers of rTasks that the channels and the rows are split into.
    """

    simd: int
    vectors: int
    pixels: int
    channel_parts: int
    row_parts: int

    def covered(self, channels: int, pixels: int) -> tuple[int, int]:
        """Channels and pixels of all register tiles that it takes for so many: as many, or more."""
        step = self.simd * self.vectors
        return -(-channels // step) * step, -(-pixels // self.pixels) * self.pixels


def extent_of(block: s_tir.SBlock, axis: int) -> int:
    """Extent of an axis of a block."""
    return int(block.iter_vars[axis].dom.extent)


def outer_axes(block: s_tir.SBlock, anchor: Anchor) -> list[int]:
    """Spatial axes except the vector's and the innermost row's; the last of them is split into rTasks."""
    spatial = [i for i, axis in enumerate(block.iter_vars) if axis.iter_type == SPATIAL]
    return [i for i in spatial if i not in (anchor.vector, anchor.row)]


def row_axis_of(block: s_tir.SBlock, anchor: Anchor) -> int:
    """The axis that is split into `row_parts`: the last outer one; -1 where there is none, and pixels are split."""
    outer = [i for i in outer_axes(block, anchor) if extent_of(block, i) > 1]
    return outer[-1] if outer else -1


def covers_of(block: s_tir.SBlock, anchor: Anchor, tile: ContractionTile) -> dict[int, Cover]:
    """How register tiles cover the axes that they do not divide: channels a vector at a time, and pixels."""
    channels, pixels = extent_of(block, anchor.vector), extent_of(block, anchor.row) if anchor.row >= 0 else 1
    all_channels, all_pixels = tile.covered(channels, pixels)
    covers = {}
    if all_channels > channels:
        covers[anchor.vector] = Cover(tile.simd, all_channels)
    if anchor.row >= 0 and all_pixels > pixels:
        covers[anchor.row] = Cover(tile.pixels, all_pixels)
    return covers
