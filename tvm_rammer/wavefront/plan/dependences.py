"""Which rTasks an rTask depends on: those whose output it reads, rather than all of their operator.

Rammer's barrier-rTask waits for a set of rTasks (OSDI 2020, 3.4). Here that set comes from the footprints of the
two kernels. Two rTasks are independent if the boxes that they touch lie apart in some dimension: of the view
that both footprints have, or else of the buffer's own shape, or of its elements in row-major order. Of different
buffers that share memory the inner dimensions count that both have, and the order of all elements.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...ir import ITEM_BYTES, Footprint, RGraph, RKernel, RProgram

Needs = tuple[int, ...]
"""For each rTask of a reader the rTasks of a writer that it depends on, as bits."""

Interval = tuple[int, int]
Box = tuple[Interval, ...]


def needs(graph: RGraph, writer: int, writes: RKernel, reader: int, reads: RKernel) -> Needs | None:
    """What each rTask of an operator needs of an operator before it.

    Parameters
    ----------
    graph : RGraph
    writer, reader : int
        The operators; the second reads what the first writes.
    writes, reads : RKernel
        Their kernels.

    Returns
    -------
    tuple of int or None
        None where every rTask needs all of them, or nothing better is known.
    """
    before, after = graph.operators[writer], graph.operators[reader]
    found: list[Needs] = []
    for i, b in enumerate(after.inputs):
        for n, written in enumerate(before.outputs):
            if graph.extent(b).overlaps(graph.extent(written)):
                out, into = _footprint(writes, len(before.inputs) + n), _footprint(reads, i)
                if out is None or into is None:
                    return None
                sets = _overlaps(out, writes.num_rtasks, into, reads.num_rtasks, _shared(graph, written, b))
                if sets is None:
                    return None
                found.append(sets)
    if len(found) == 1:
        return found[0]
    return tuple(union(bits, range(len(bits))) for bits in zip(*found, strict=True))


def between(
    graph: RGraph,
    one: int,
    one_kernel: RKernel,
    parameter: int,
    other: int,
    other_kernel: RKernel,
    other_parameter: int,
) -> Needs | None:
    """For each rTask of the other operator those of the one that touch the same elements of a buffer.

    Parameters
    ----------
    graph : RGraph
    one, other : int
        The operators.
    one_kernel, other_kernel : RKernel
    parameter, other_parameter : int
        Which of its buffers, inputs first, lies where the other's does.

    Returns
    -------
    tuple of int or None
        As bits; None where every rTask touches what all of them do, or nothing better is known.
    """
    buffers = [
        (*graph.operators[o].inputs, *graph.operators[o].outputs)[p]
        for o, p in ((one, parameter), (other, other_parameter))
    ]
    out, into = _footprint(one_kernel, parameter), _footprint(other_kernel, other_parameter)
    if out is None or into is None:
        return None
    return _overlaps(out, one_kernel.num_rtasks, into, other_kernel.num_rtasks, _shared(graph, *buffers, slot=True))


def union(sets: Sequence[int], indices: Iterable[int]) -> int:
    """The union of some of many sets, each as bits."""
    bits = 0
    for i in indices:
        bits |= sets[i]
    return bits


def count_unknown(program: RProgram) -> tuple[int, int]:
    """Count the dependences between operators of a program, and those for which footprints are missing.

    Returns
    -------
    unknown : int
        Dependences for which a kernel lacks the footprint: each rTask waits for all of the operator.
    total : int
    """
    graph, kernels = program.graph, program.kernels
    pairs = [
        (_footprint(kernels[reader], i), _footprint(kernels[writer], len(graph.operators[writer].inputs) + n))
        for reader, before in enumerate(graph.predecessors())
        for writer in before
        for i, b in enumerate(graph.operators[reader].inputs)
        for n, written in enumerate(graph.operators[writer].outputs)
        if graph.extent(b).overlaps(graph.extent(written))
    ]
    return sum(None in pair for pair in pairs), len(pairs)


def _footprint(kernel: RKernel, parameter: int) -> Footprint | None:
    return kernel.footprints[parameter] if parameter < len(kernel.footprints) else None


@dataclass(frozen=True, slots=True)
class _Shared:
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


def _shared(graph: RGraph, written: int, read: int, *, slot: bool = False) -> _Shared:
    """How they overlap in one step; or, for buffers that move, where both are in the same slot."""
    out, into = graph.buffers[written], graph.buffers[read]
    distance = graph.extent(written).start - graph.extent(read).start
    if slot and out.place and out.place.stride:
        distance = 0
    return _Shared(out.shape, into.shape, distance // ITEM_BYTES[into.dtype])


@lru_cache(maxsize=4096)
def _overlaps(writes: Footprint, writers: int, reads: Footprint, readers: int, memory: _Shared) -> Needs | None:
    """For each reading rTask the writing ones whose box overlaps its own, as bits; None where all do."""
    if not (_fits(writes, writers, memory.written) and _fits(reads, readers, memory.read)):
        return None
    everything = (1 << writers) - 1
    overlapping = [everything] * readers
    for written, read in _axes(writes, writers, reads, readers, memory):
        axis = _Axis(written)
        for r, interval in enumerate(read):
            overlapping[r] &= axis.overlapping(interval)
    return None if all(bits == everything for bits in overlapping) else tuple(overlapping)


def _fits(footprint: Footprint, num_rtasks: int, shape: tuple[int, ...]) -> bool:
    view = footprint.view or shape
    return (
        math.prod(footprint.radices) == num_rtasks
        and len(footprint.extents) == len(view)
        and math.prod(view) == math.prod(shape)
    )


def _axes(
    writes: Footprint, writers: int, reads: Footprint, readers: int, memory: _Shared
) -> list[tuple[list[Interval], list[Interval]]]:
    """The dimensions in which to compare: for each the intervals of the writers and of the readers."""
    views = writes.view or memory.written, reads.view or memory.read
    boxes = _boxes(writes, writers, views[0]), _boxes(reads, readers, views[1])
    if views[0] == views[1] and not memory.distance:
        return [([w[d] for w in boxes[0]], [r[d] for r in boxes[1]]) for d in range(len(views[0]))]
    shapes = memory.written, memory.read
    axes = _common_axes(boxes, views, memory.distance)
    if shapes != views:
        own = [[_reshape(box, view, shape) for box in of] for of, view, shape in zip(boxes, views, shapes, strict=True)]
        axes += _common_axes(own, shapes, memory.distance)
    return axes


def _common_axes(
    boxes: Sequence[list[Box]], shapes: Sequence[tuple[int, ...]], distance: int
) -> list[tuple[list[Interval], list[Interval]]]:
    """The innermost dimensions that two shapes have in common; all others as one; and the order of elements."""
    dims = [[d for d, size in enumerate(shape) if size > 1] for shape in shapes]
    inner, axes = 1, []
    for a, b in zip(*map(reversed, dims), strict=False):
        size = shapes[0][a]
        if size != shapes[1][b] or distance % (inner * size):
            break
        inner *= size
        axes.append(([box[a] for box in boxes[0]], [box[b] for box in boxes[1]]))
    parts = [
        [_row_major(tuple(box[d] for d in of), [shape[d] for d in of]) for box in all_boxes]
        for all_boxes, shape, of in zip(
            boxes, shapes, (dims[0][: len(dims[0]) - len(axes)], dims[1][: len(dims[1]) - len(axes)]), strict=True
        )
    ]
    linear = [[_row_major(box, shape) for box in of] for of, shape in zip(boxes, shapes, strict=True)]
    return [*axes, _shifted(parts, distance // inner), _shifted(linear, distance)]


def _shifted(intervals: Sequence[list[Interval]], distance: int) -> tuple[list[Interval], list[Interval]]:
    """Move what starts later, by the distance; what is empty stays at 0, where nothing overlaps it."""
    by = max(distance, 0), max(-distance, 0)
    written, read = (
        [(low + n, high + n) if low < high else (0, 0) for low, high in of] for of, n in zip(intervals, by, strict=True)
    )
    return written, read


def _boxes(footprint: Footprint, num_rtasks: int, view: tuple[int, ...]) -> list[Box]:
    """The boxes, cut off at the ends of the buffer; an empty one is empty in all dimensions."""
    boxes = []
    for t in range(num_rtasks):
        box = tuple((max(0, low), min(size, high)) for (low, high), size in zip(footprint.box(t), view, strict=True))
        boxes.append(box if all(low < high for low, high in box) else ((0, 0),) * len(view))
    return boxes


def _row_major(box: Box, view: Sequence[int]) -> Interval:
    """From the first element of a box to its last, in row-major order."""
    if any(low == high for low, high in box):
        return 0, 0
    first = last = 0
    for (low, high), size in zip(box, view, strict=True):
        first, last = first * size + low, last * size + high - 1
    return first, last + 1


def _reshape(box: Box, view: tuple[int, ...], shape: tuple[int, ...]) -> Box:
    """The smallest box of the buffer's own shape around a box of a view."""
    same = next((d for d, (a, b) in enumerate(zip(view, shape, strict=False)) if a != b), min(len(view), len(shape)))
    first, end = _row_major(box[same:], view[same:])
    if first == end:
        return ((0, 0),) * len(shape)
    inner: list[Interval] = []
    last, together = end - 1, True
    for d in range(same, len(shape)):
        stride = math.prod(shape[d + 1 :])
        low, high = (first // stride, last // stride) if together else (0, shape[d] - 1)
        inner.append((low, high + 1))
        together = together and low == high
        first, last = first - low * stride, last - low * stride
    return (*box[:same], *inner)


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
    """Sort ends; for each number of them, from none to all, which intervals the first so many belong to, as bits."""
    order = sorted(range(len(ends)), key=lambda n: ends[n])
    prefixes = [0]
    for n in order:
        prefixes.append(prefixes[-1] | 1 << n)
    return [ends[n] for n in order], prefixes
