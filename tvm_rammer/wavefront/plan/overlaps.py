"""Which rTasks of two operators touch the same elements, by the boxes of their footprints.

Two boxes are apart if they lie apart in some dimension: of the view that both footprints have, or else of the
buffer's own shape, or of its elements in row-major order. Of different buffers that share memory the inner dimensions
count that both have, and the order of all elements.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import or_

from ...ir import Footprint

Needs = tuple[int, ...]
"""For each rTask of a reader the rTasks of a writer that it depends on, as bits."""


Interval = tuple[int, int]
Box = tuple[Interval, ...]
Column = list[Interval]
"""In one dimension, for each rTask."""


@dataclass(frozen=True, slots=True)
class Shared:
    """How the memory of a buffer that is written and of one that is read, maybe the same, overlaps.

    Parameters
    ----------
    written, read : tuple of int
        Their shapes.
    distance : int
        By how many elements the written one starts after the other; negative where it starts before.
    """

    written: tuple[int, ...]
    read: tuple[int, ...]
    distance: int


@lru_cache(maxsize=4096)
def overlaps(writes: Footprint, writers: int, reads: Footprint, readers: int, memory: Shared) -> Needs | None:
    """For each reading rTask the writing ones whose box overlaps its own, as bits; None where all do."""
    if not (_fits(writes, writers, memory.written) and _fits(reads, readers, memory.read)):
        return None
    axes = _axes(_touched(writes, memory.written), _touched(reads, memory.read), memory.distance)
    everything = (1 << writers) - 1
    written = [_Axis(column) for column, _ in axes]
    found: dict[tuple[Interval, ...], int] = {}
    for intervals in zip(*(column for _, column in axes), strict=True):
        if intervals not in found:
            bits = everything
            for axis, interval in zip(written, intervals, strict=True):
                bits &= axis.overlapping(interval)
            found[intervals] = bits
    if not axes or all(bits == everything for bits in found.values()):
        return None
    return tuple(found[intervals] for intervals in zip(*(column for _, column in axes), strict=True))


def _fits(footprint: Footprint, num_rtasks: int, shape: tuple[int, ...]) -> bool:
    view = footprint.view or shape
    return (
        math.prod(footprint.radices) == num_rtasks
        and len(footprint.extents) == len(view)
        and math.prod(view) == math.prod(shape)
    )


@dataclass(frozen=True, slots=True)
class _Boxes:
    """The boxes of `count` rTasks in a shape of a buffer, a column for each dimension; an empty one is 0, 0 in all."""

    count: int
    shape: tuple[int, ...]
    columns: tuple[Column, ...]

    def of(self, dims: Sequence[int]) -> "_Boxes":
        """The same in some of the dimensions."""
        return _Boxes(self.count, tuple(self.shape[d] for d in dims), tuple(self.columns[d] for d in dims))

    def row_major(self) -> Column:
        """For each box from its first element to its last, in row-major order."""
        first, last = [0] * self.count, [0] * self.count
        for size, column in zip(self.shape, self.columns, strict=True):
            first = [f * size + low for f, (low, _) in zip(first, column, strict=True)]
            last = [n * size + high - 1 for n, (_, high) in zip(last, column, strict=True)]
        found = [(f, n + 1) for f, n in zip(first, last, strict=True)]
        if not self.columns:
            return found
        return [(0, 0) if low == high else i for i, (low, high) in zip(found, self.columns[0], strict=True)]


@lru_cache(maxsize=64)
def _touched(footprint: Footprint, shape: tuple[int, ...]) -> tuple[_Boxes, _Boxes]:
    """What the rTasks touch: in the view that the footprint has, and in the buffer's own shape."""
    seen = _boxes(footprint, footprint.view or shape)
    return seen, seen if seen.shape == shape else _reshape(seen, shape)


def _boxes(footprint: Footprint, view: tuple[int, ...]) -> _Boxes:
    """The boxes, cut off at the ends of the buffer (`Footprint.box` says what each is)."""
    columns = []
    for offset, row, extent, size in zip(
        footprint.offsets, footprint.coefficients, footprint.extents, view, strict=True
    ):
        starts = [offset]
        for c, radix in zip(row, footprint.radices, strict=True):
            steps = range(0, c * radix, c) if c else (0,) * radix
            starts = [start + step for start in starts for step in steps]
        columns.append([(max(0, start), min(size, start + extent)) for start in starts])
    empty = {t for column in columns for t, (low, high) in enumerate(column) if low >= high}
    if empty:
        columns = [[(0, 0) if t in empty else i for t, i in enumerate(column)] for column in columns]
    return _Boxes(math.prod(footprint.radices), view, tuple(columns))


def _reshape(boxes: _Boxes, shape: tuple[int, ...]) -> _Boxes:
    """The smallest boxes of another shape of as many elements around those of a view."""
    view = boxes.shape
    same = next((d for d, (a, b) in enumerate(zip(view, shape, strict=False)) if a != b), min(len(view), len(shape)))
    linear = boxes.of(range(same, len(view))).row_major()
    inner = {interval: _box_around(interval, shape[same:]) for interval in set(linear)}
    columns = [[inner[interval][d] for interval in linear] for d in range(len(shape) - same)]
    empty = {t for t, (first, end) in enumerate(linear) if first == end}
    outer = [[(0, 0) if t in empty else i for t, i in enumerate(column)] for column in boxes.columns[:same]]
    return _Boxes(boxes.count, shape, (*outer, *columns))


def _box_around(interval: Interval, shape: tuple[int, ...]) -> Box:
    """The smallest box of a shape around elements that follow one another in row-major order."""
    first, last = interval[0], interval[1] - 1
    if last < first:
        return ((0, 0),) * len(shape)
    box: list[Interval] = []
    together = True
    for d in range(len(shape)):
        stride = math.prod(shape[d + 1 :])
        low, high = (first // stride, last // stride) if together else (0, shape[d] - 1)
        box.append((low, high + 1))
        together = together and low == high
        first, last = first - low * stride, last - low * stride
    return tuple(box)


def _axes(writes: tuple[_Boxes, _Boxes], reads: tuple[_Boxes, _Boxes], distance: int) -> list[tuple[Column, Column]]:
    """The dimensions in which to compare: for each the intervals of the writers and of the readers."""
    seen, own = zip(writes, reads, strict=True)
    if seen[0].shape == seen[1].shape and not distance:
        return list(zip(seen[0].columns, seen[1].columns, strict=True))
    axes = _common_axes(seen, distance)
    if own != seen:
        axes += _common_axes(own, distance)
    return axes


def _common_axes(boxes: tuple[_Boxes, _Boxes], distance: int) -> list[tuple[Column, Column]]:
    """The innermost dimensions that two shapes have in common; all others as one; and the order of elements."""
    dims = [[d for d, size in enumerate(of.shape) if size > 1] for of in boxes]
    inner, axes = 1, []
    for a, b in zip(*map(reversed, dims), strict=False):
        size = boxes[0].shape[a]
        if size != boxes[1].shape[b] or distance % (inner * size):
            break
        inner *= size
        axes.append((boxes[0].columns[a], boxes[1].columns[b]))
    outer = [of.of(some[: len(some) - len(axes)]).row_major() for of, some in zip(boxes, dims, strict=True)]
    linear = [of.row_major() for of in boxes]
    return [*axes, _shifted(outer, distance // inner), _shifted(linear, distance)]


def _shifted(intervals: Sequence[Column], distance: int) -> tuple[Column, Column]:
    """Move what starts later, by the distance; what is empty stays at 0, where nothing overlaps it."""
    by = max(distance, 0), max(-distance, 0)
    written, read = (
        [(low + n, high + n) if low < high else (0, 0) for low, high in of] for of, n in zip(intervals, by, strict=True)
    )
    return written, read


class _Axis:
    """Finds those of many intervals that overlap another: they start before its end, and end after its start."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self.starts, self.started = _prefixes([low for low, _ in intervals])
        self.ends, self.ended = _prefixes([high for _, high in intervals])
        self.found: dict[Interval, int] = {}

    def overlapping(self, interval: Interval) -> int:
        """The intervals that overlap it, as bits."""
        if interval not in self.found:
            started = self.started[bisect_left(self.starts, interval[1])]
            self.found[interval] = started & ~self.ended[bisect_right(self.ends, interval[0])]
        return self.found[interval]


def _prefixes(ends: Sequence[int]) -> tuple[list[int], list[int]]:
    """The distinct ends, sorted; for each number of them, from none to all, the intervals that have one, as bits."""
    having: dict[int, int] = {}
    for n, end in enumerate(ends):
        having[end] = having.get(end, 0) | 1 << n
    distinct = sorted(having)
    return distinct, list(accumulate((having[end] for end in distinct), or_, initial=0))
