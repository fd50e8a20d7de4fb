"""Which rTasks read what which rTasks write, for the verifier: found by a sweep along each dimension."""

import math
from collections.abc import Iterator, Sequence

from ...ir import Footprint, RProgram

Interval = tuple[int, int]
Partners = tuple[int, ...]
"""For each rTask of a reader the rTasks of a writer that it may read from, as bits."""


class Dependences:
    """Answers, for the kernels of a program, which rTasks of a writer an rTask of a reader may read from.

    Footprints are facts about the code of a kernel: they are trusted. A footprint that does not fit its buffer or its
    kernel, or is missing, means that an rTask may touch all of the buffer.

    Parameters
    ----------
    program : RProgram
    """

    def __init__(self, program: RProgram) -> None:
        self._program = program
        self._found: dict[tuple[Footprint, Footprint, tuple[int, ...]], Partners | None] = {}

    def partners(self, writer: int, reader: int, buffer: int) -> Partners | None:
        """For one buffer that the first operator writes and the second reads; None where each may read from all."""
        graph, kernels = self._program.graph, self._program.kernels
        into = [i for i, b in enumerate(graph.operators[reader].inputs) if b == buffer]
        outof = len(graph.operators[writer].inputs) + graph.operators[writer].outputs.index(buffer)
        shape = graph.buffers[buffer].shape
        written = _usable(kernels[writer].footprints, outof, kernels[writer].num_rtasks, shape)
        reads = [_usable(kernels[reader].footprints, i, kernels[reader].num_rtasks, shape) for i in into]
        found: list[Partners] = []
        for read in reads:
            if written is None or read is None:
                return None
            key = (written, read, shape)
            if key not in self._found:
                self._found[key] = _partners(written, read, shape)
            partners = self._found[key]
            if partners is None:
                return None
            found.append(partners)
        return found[0] if len(found) == 1 else tuple(_all_of(bits) for bits in zip(*found, strict=True))


def _all_of(sets: Sequence[int]) -> int:
    """The union of sets of bits."""
    united = 0
    for bits in sets:
        united |= bits
    return united


def _usable(
    footprints: Sequence[Footprint | None], parameter: int, num_rtasks: int, shape: tuple[int, ...]
) -> Footprint | None:
    footprint = footprints[parameter] if parameter < len(footprints) else None
    if footprint is None or math.prod(footprint.radices) != num_rtasks:
        return None
    seen_as = footprint.view or shape
    fits = len(seen_as) == len(footprint.offsets) and math.prod(seen_as) == math.prod(shape)
    return footprint if fits else None


def _partners(written: Footprint, read: Footprint, shape: tuple[int, ...]) -> Partners | None:
    writers, readers = math.prod(written.radices), math.prod(read.radices)
    everyone = (1 << writers) - 1
    found = [everyone] * readers
    for ours, theirs in _dimensions(written, read, shape):
        for reader, bits in enumerate(_overlaps(ours, theirs)):
            found[reader] &= bits
    return None if all(bits == everyone for bits in found) else tuple(found)


def _dimensions(
    written: Footprint, read: Footprint, shape: tuple[int, ...]
) -> Iterator[tuple[list[Interval], list[Interval]]]:
    """Where boxes can lie apart: in a common view; else in row-major order, and in the buffer's own shape."""
    views = [footprint.view or shape for footprint in (written, read)]
    boxes = [_clipped(footprint, view) for footprint, view in zip((written, read), views, strict=True)]
    if views[0] == views[1]:
        for d in range(len(views[0])):
            yield [b[d] for b in boxes[0]], [b[d] for b in boxes[1]]
        return
    ends = [[_ends(box, view) for box in of] for of, view in zip(boxes, views, strict=True)]
    yield ends[0], ends[1]
    own = [
        [_within(box, view, shape) for box in of] if view != shape else of
        for of, view in zip(boxes, views, strict=True)
    ]
    for d in range(len(shape)):
        yield [b[d] for b in own[0]], [b[d] for b in own[1]]


def _clipped(footprint: Footprint, view: tuple[int, ...]) -> list[list[Interval]]:
    found = []
    for index in range(math.prod(footprint.radices)):
        box = [(max(a, 0), min(b, size)) for (a, b), size in zip(footprint.box(index), view, strict=True)]
        if any(a >= b for a, b in box):
            box = [(0, 0) for _ in view]
        found.append(box)
    return found


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def _ends(box: Sequence[Interval], view: tuple[int, ...]) -> Interval:
    """The first element of a box and the one past its last, in row-major order."""
    if any(a == b for a, b in box):
        return 0, 0
    strides = _strides(view)
    first = sum(a * s for (a, _), s in zip(box, strides, strict=True))
    return first, 1 + sum((b - 1) * s for (_, b), s in zip(box, strides, strict=True))


def _within(box: list[Interval], view: tuple[int, ...], shape: tuple[int, ...]) -> list[Interval]:
    """The box in the buffer's shape that holds a box of a view: leading dimensions of equal size stay as they are."""
    if any(a == b for a, b in box):
        return [(0, 0)] * len(shape)
    kept = 0
    while kept < min(len(view), len(shape)) and view[kept] == shape[kept]:
        kept += 1
    first, end = _ends(box[kept:], view[kept:])
    found = list(box[:kept])
    for stride, size in zip(_strides(shape[kept:]), shape[kept:], strict=True):
        found.append((first // stride % size, (end - 1) // stride % size + 1))
        if first // stride != (end - 1) // stride:
            break
    return found + [(0, size) for size in shape[len(found) :]]


def _overlaps(writers: Sequence[Interval], readers: Sequence[Interval]) -> list[int]:
    """For each reader the writers whose intervals overlap its own, by one sweep over all ends.

    At a reader's start the writers that have closed are noted; at its end those that have opened: the difference
    overlaps it. At the same index intervals close before others open.
    """
    events = [(a, 2, n) for n, (a, b) in enumerate(writers) if a < b]
    events += [(b, 0, n) for n, (a, b) in enumerate(writers) if a < b]
    events += [(a, 3, n) for n, (a, b) in enumerate(readers) if a < b]
    events += [(b, 1, n) for n, (a, b) in enumerate(readers) if a < b]
    opened = closed = 0
    closed_before, found = [0] * len(readers), [0] * len(readers)
    for _, kind, n in sorted(events):
        if kind == 0:
            closed |= 1 << n
        elif kind == 1:
            found[n] = opened & ~closed_before[n]
        elif kind == 2:
            opened |= 1 << n
        else:
            closed_before[n] = closed
    return found
