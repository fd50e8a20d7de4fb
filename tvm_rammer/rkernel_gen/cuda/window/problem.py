"""Sliding windows as a problem: which axes of a reduction are channels, filters, rows and columns."""

import math
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.ir import Expr, TensorRegion

from ....ir import ITEM_BYTES
from ...analysis.affine import linear
from ...analysis.blocks import REDUCTION


@dataclass(frozen=True, slots=True)
class WindowReduction:
    """Extents of a sum (or maximum) over windows, and the axes of its block: -1 where there is none.

    Parameters
    ----------
    others, channels, filters, rows, columns : int
        Extents of the output. Channels index the image, filters the weights only; `others` are the batch and further
        spatial dimensions.
    depth : int
        Channels of the image that one sum covers.
    terms : int
        Terms of a sum.
    stride_rows, stride_columns : int
    receptive_rows, receptive_columns : int
        Extents of the receptive field of one output.
    taps_per_row : int
        Terms in a row of a window: fewer than `receptive_columns` where it is dilated.
    weighted : bool
        Whether there are weights, which pools have not.
    itemsize : int
        Bytes of an element of the image.
    other_axes : tuple of int
    channel_axis, filter_axis, row_axis, column_axis : int
        Positions of the block's axes.
    """

    others: int
    channels: int
    filters: int
    rows: int
    columns: int
    depth: int
    terms: int
    stride_rows: int
    stride_columns: int
    receptive_rows: int
    receptive_columns: int
    taps_per_row: int
    weighted: bool
    itemsize: int
    other_axes: tuple[int, ...]
    channel_axis: int
    filter_axis: int
    row_axis: int
    column_axis: int

    def span_rows(self, rows: int) -> int:
        """Rows of the image that `rows` rows of outputs read."""
        return (rows - 1) * self.stride_rows + self.receptive_rows

    def span_columns(self, columns: int) -> int:
        """Columns of the image that `columns` columns of outputs read."""
        return (columns - 1) * self.stride_columns + self.receptive_columns


def describe_window(stmt: s_tir.SBlock) -> WindowReduction | None:
    """Describe a reduction over windows; None for others, and where outputs of a row do not share rows of the image."""
    axes = {axis.var: i for i, axis in enumerate(stmt.iter_vars)}
    extents = [int(axis.dom.extent) for axis in stmt.iter_vars]
    reduced = {a for a, axis in enumerate(stmt.iter_vars) if axis.iter_type == REDUCTION}
    image = _image_of(stmt, axes, extents, reduced)
    if image is None:
        return None
    used = [(part.min, {a for a in _axes(part.min, axes) if extents[a] > 1}) for part in image.region]
    slid = {min(found - reduced): (index, found & reduced) for index, found in used if _slides(found, reduced)}
    lines = {a: _line(index, found, axes) for a, (index, found) in slid.items()}
    if not all(lines.values()):
        return None
    spatial = [a for a in range(len(extents)) if a not in reduced]
    moving = [a for a in spatial if extents[a] > 1]
    plain = [a for _, found in used for a in found - reduced if a not in slid]
    filters = [a for a in moving if a not in slid and a not in plain]
    if not moving or moving[-1] not in slid or len(filters) > 1:
        return None
    channel = max(plain, key=lambda a: (extents[a], a), default=-1)
    column, row = max(slid), max((a for a in slid if a != max(slid)), default=-1)
    filter_axis = filters[0] if filters else -1
    chosen = {channel, column, row, filter_axis}
    summed = math.prod(extents[a] for _, found in used for a in found if a in reduced and not found - reduced)
    others = [a for a in spatial if a not in chosen]
    below = {a: 1 + sum(lines[a][tap] * (extents[tap] - 1) for tap in found) for a, (_, found) in slid.items()}

    def extent(axis: int) -> int:
        return extents[axis] if axis >= 0 else 1

    return WindowReduction(
        others=math.prod(extents[a] for a in others),
        channels=extent(channel),
        filters=extent(filter_axis),
        rows=extent(row),
        columns=extents[column],
        depth=summed * math.prod(below[a] for a in slid if a in others),
        terms=math.prod(extents[a] for a in reduced),
        stride_rows=lines[row][row] if row >= 0 else 1,
        stride_columns=lines[column][column],
        receptive_rows=below.get(row, 1),
        receptive_columns=below[column],
        taps_per_row=math.prod(extents[a] for a in slid[column][1]),
        weighted=len(stmt.reads) > 1,
        itemsize=ITEM_BYTES[str(image.source.dtype)],
        other_axes=tuple(others),
        channel_axis=channel,
        filter_axis=filter_axis,
        row_axis=row,
        column_axis=column,
    )


def _image_of(
    stmt: s_tir.SBlock, axes: dict[tirx.Var, int], extents: list[int], reduced: set[int]
) -> TensorRegion | None:
    """The operand over which windows slide, if it is exactly one."""
    found = [
        read
        for read in stmt.reads
        if any(_slides({a for a in _axes(part.min, axes) if extents[a] > 1}, reduced) for part in read.region)
    ]
    return found[0] if len(found) == 1 else None


def _slides(found: set[int], reduced: set[int]) -> bool:
    """Whether an index with these axes is one position of a window plus an offset in it."""
    return len(found - reduced) == 1 and bool(found & reduced)


def _axes(index: Expr, axes: dict[tirx.Var, int]) -> set[int]:
    return {axes[var] for var in tirx.analysis.undefined_vars(index) if var in axes}


def _line(index: Expr, taps: set[int], axes: dict[tirx.Var, int]) -> dict[int, int]:
    """The factors of the axes in an index; empty where it is no sum of multiples, or runs against an axis."""
    factors = linear(index, list(axes))
    if factors is None:
        return {}
    found = dict(zip(axes.values(), factors, strict=False))
    return found if min(found.values()) >= 0 and all(found[tap] for tap in taps) else {}
