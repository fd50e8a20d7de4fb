"""Which rTasks an rTask depends on: those whose output it reads, not their whole operator.

Rammer's barrier-rTask waits for a set of rTasks (OSDI 2020, 3.4). Here that set comes from the footprints of the
two kernels. Two rTasks are independent if the boxes that they touch lie apart in some dimension: of the view
that both footprints have, or else of the buffer's own shape, or of the buffer as one long row.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...ir import Footprint, RGraph, RKernel, RProgram

Needs = tuple[int, ...]
"""For each rTask of a reader the rTasks of a writer that it depends on, as bits."""

Span = tuple[int, int]
Box = tuple[Span, ...]


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
            if b == written:
                out, into = _region(writes, len(before.inputs) + n), _region(reads, i)
                if out is None or into is None:
                    return None
                met = _meet(out, writes.num_rtasks, into, reads.num_rtasks, graph.buffers[b].shape)
                if met is None:
                    return None
                found.append(met)
    if len(found) == 1:
        return found[0]
    return tuple(union(bits, range(len(bits))) for bits in zip(*found, strict=True))


def union(sets: Sequence[int], indices: Iterable[int]) -> int:
    """Unite some of many sets of bits."""
    bits = 0
    for i in indices:
        bits |= sets[i]
    return bits


def fallbacks(program: RProgram) -> tuple[int, int]:
    """Count the dependences between operators of a program, and those that nothing is known of.

    Returns
    -------
    unknown : int
        Dependences for which a kernel lacks the footprint: each rTask waits for the whole operator.
    total : int
    """
    graph, kernels = program.graph, program.kernels
    made = {b: (o, n) for o, op in enumerate(graph.operators) for n, b in enumerate(op.outputs)}
    edges = [(o, i, *made[b]) for o, op in enumerate(graph.operators) for i, b in enumerate(op.inputs) if b in made]
    unknown = sum(
        _region(kernels[reader], i) is None or _region(kernels[writer], len(graph.operators[writer].inputs) + n) is None
        for reader, i, writer, n in edges
    )
    return unknown, len(edges)


def _region(kernel: RKernel, parameter: int) -> Footprint | None:
    return kernel.footprints[parameter] if parameter < len(kernel.footprints) else None


@lru_cache(maxsize=4096)
def _meet(writes: Footprint, writers: int, reads: Footprint, readers: int, shape: tuple[int, ...]) -> Needs | None:
    """For each reading rTask the writing ones that it meets; None where each meets all. A pure function's memory."""
    if not (_fits(writes, writers, shape) and _fits(reads, readers, shape)):
        return None
    everything = (1 << writers) - 1
    met = [everything] * readers
    for written, read in _axes(writes, writers, reads, readers, shape):
        find = _Axis(written)
        for r, span in enumerate(read):
            met[r] &= find.meeting(span)
    return None if all(bits == everything for bits in met) else tuple(met)


def _fits(footprint: Footprint, num_rtasks: int, shape: tuple[int, ...]) -> bool:
    view = footprint.view or shape
    return (
        math.prod(footprint.radices) == num_rtasks
        and len(footprint.extents) == len(view)
        and math.prod(view) == math.prod(shape)
    )


def _axes(
    writes: Footprint, writers: int, reads: Footprint, readers: int, shape: tuple[int, ...]
) -> list[tuple[list[Span], list[Span]]]:
    """The dimensions in which to compare: for each the spans of the writers and of the readers."""
    view = writes.view or shape
    written, read = _boxes(writes, writers, view), _boxes(reads, readers, reads.view or shape)
    if view == (reads.view or shape):
        return [([w[d] for w in written], [r[d] for r in read]) for d in range(len(view))]
    own = [_reshape(box, view, shape) for box in written], [_reshape(box, reads.view or shape, shape) for box in read]
    row = [_row(box, view) for box in written], [_row(box, reads.view or shape) for box in read]
    return [row, *(([w[d] for w in own[0]], [r[d] for r in own[1]]) for d in range(len(shape)))]


def _boxes(footprint: Footprint, num_rtasks: int, view: tuple[int, ...]) -> list[Box]:
    """The boxes, cut off at the ends of the buffer; an empty one is empty in all dimensions."""
    boxes = []
    for t in range(num_rtasks):
        box = tuple((max(0, low), min(size, high)) for (low, high), size in zip(footprint.box(t), view, strict=True))
        boxes.append(box if all(low < high for low, high in box) else ((0, 0),) * len(view))
    return boxes


def _row(box: Box, view: tuple[int, ...]) -> Span:
    """From the first element of a box to its last, the buffer as one long row."""
    if any(low == high for low, high in box):
        return 0, 0
    first = last = 0
    for (low, high), size in zip(box, view, strict=True):
        first, last = first * size + low, last * size + high - 1
    return first, last + 1


def _reshape(box: Box, view: tuple[int, ...], shape: tuple[int, ...]) -> Box:
    """The smallest box of the buffer's own shape around a box of a view."""
    same = next((d for d, (a, b) in enumerate(zip(view, shape, strict=False)) if a != b), min(len(view), len(shape)))
    first, end = _row(box[same:], view[same:])
    if first == end:
        return ((0, 0),) * len(shape)
    inner: list[Span] = []
    last, together = end - 1, True
    for d in range(same, len(shape)):
        stride = math.prod(shape[d + 1 :])
        low, high = (first // stride, last // stride) if together else (0, shape[d] - 1)
        inner.append((low, high + 1))
        together = together and low == high
        first, last = first - low * stride, last - low * stride
    return (*box[:same], *inner)


class _Axis:
    """Finds those of many spans that meet a span: begun before its end, not ended by its beginning."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.starts, self.begun = _sweep([low for low, _ in spans])
        self.ends, self.ended = _sweep([high for _, high in spans])
        self.known: dict[Span, int] = {}

    def meeting(self, span: Span) -> int:
        """The spans that meet it, as bits."""
        if span not in self.known:
            begun = self.begun[bisect_left(self.starts, span[1])]
            self.known[span] = begun & ~self.ended[bisect_right(self.ends, span[0])]
        return self.known[span]


def _sweep(places: Sequence[int]) -> tuple[list[int], list[int]]:
    """The places in order, and after how many of them which ones have been passed."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    passed = [0]
    for n in order:
        passed.append(passed[-1] | 1 << n)
    return [places[n] for n in order], passed
