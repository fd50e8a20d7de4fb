"""Which rTasks read what which rTasks write, for the verifier: found by a sweep along each dimension."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...ir import ITEM_BYTES, Footprint, RProgram, Run

Interval = tuple[int, int]
Partners = tuple[int, ...]
"""For each rTask of a reader the rTasks of a writer that it may read from, as bits."""


def partners_of_run(partners: Sequence[int], run: Run) -> int:
    """The rTasks that those of a `Run` may read from, together, as bits."""
    found = 0
    for t in run.indices():
        found |= partners[t]
    return found


@dataclass(frozen=True, slots=True)
class _Memory:
    """The shapes of a buffer that is written and of one that is read, and at which element of a third each starts."""

    written: tuple[int, ...]
    read: tuple[int, ...]
    written_start: int
    read_start: int


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
        self._found: dict[tuple[Footprint, Footprint, _Memory], Partners | None] = {}

    def partners(self, writer: int, written: int, reader: int, read: int) -> Partners | None:
        """For a buffer that one operator writes and one, maybe the same, that another reads; None for all from all.

        Parameters
        ----------
        writer, written : int
            The operator, and the position of the buffer among its outputs.
        reader, read : int
            The operator, and the position of the buffer among its inputs.
        """
        return self.between(writer, len(self._program.graph.operators[writer].inputs) + written, reader, read)

    def between(self, one: int, parameter: int, other: int, other_parameter: int) -> Partners | None:
        """For each rTask of the other operator those of the one that may touch the same bytes; None for all of all.

        Parameters
        ----------
        one, parameter : int
            An operator, and which of its buffers, inputs first.
        other, other_parameter : int
            Another, and a buffer of the same memory; of slots that move they are in the same one.
        """
        graph, kernels = self._program.graph, self._program.kernels
        first, then = graph.operators[one], graph.operators[other]
        buffers = (*first.inputs, *first.outputs)[parameter], (*then.inputs, *then.outputs)[other_parameter]
        starts = [p.offset if (p := graph.buffers[b].place) else 0 for b in buffers]
        item = ITEM_BYTES[graph.buffers[buffers[1]].dtype]
        shapes = [graph.buffers[b].shape for b in buffers]
        memory = _Memory(shapes[0], shapes[1], starts[0] // item, starts[1] // item)
        touched = _usable(kernels[one].footprints, parameter, kernels[one].num_rtasks, memory.written)
        touches = _usable(kernels[other].footprints, other_parameter, kernels[other].num_rtasks, memory.read)
        if touched is None or touches is None:
            return None
        if (touched, touches, memory) not in self._found:
            self._found[touched, touches, memory] = _partners(touched, touches, memory)
        return self._found[touched, touches, memory]


def _usable(
    footprints: Sequence[Footprint | None], parameter: int, num_rtasks: int, shape: tuple[int, ...]
) -> Footprint | None:
    footprint = footprints[parameter] if parameter < len(footprints) else None
    if footprint is None or math.prod(footprint.radices) != num_rtasks:
        return None
    seen_as = footprint.view or shape
    fits = len(seen_as) == len(footprint.offsets) and math.prod(seen_as) == math.prod(shape)
    return footprint if fits else None


def _partners(writes: Footprint, reads: Footprint, memory: _Memory) -> Partners | None:
    writers, readers = math.prod(writes.radices), math.prod(reads.radices)
    everyone = (1 << writers) - 1
    found = [everyone] * readers
    for ours, theirs in _dimensions(writes, reads, memory):
        for reader, bits in enumerate(_overlaps(ours, theirs)):
            found[reader] &= bits
    return None if all(bits == everyone for bits in found) else tuple(found)


def _dimensions(
    writes: Footprint, reads: Footprint, memory: _Memory
) -> Iterator[tuple[list[Interval], list[Interval]]]:
    """Where boxes can lie apart: in a common view; else in row-major order, and in dimensions of one stride."""
    views = [writes.view or memory.written, reads.view or memory.read]
    boxes = [_clipped(footprint, view) for footprint, view in zip((writes, reads), views, strict=True)]
    starts = memory.written_start, memory.read_start
    if views[0] == views[1] and starts[0] == starts[1]:
        for d in range(len(views[0])):
            yield [b[d] for b in boxes[0]], [b[d] for b in boxes[1]]
        return
    yield from _by_stride(boxes, views, starts)
    shapes = [memory.written, memory.read]
    own = [
        [_within(box, view, shape) for box in of] if view != shape else of
        for of, view, shape in zip(boxes, views, shapes, strict=True)
    ]
    yield from _by_stride(own, shapes, starts)


def _by_stride(
    boxes: Sequence[list[list[Interval]]], shapes: Sequence[tuple[int, ...]], starts: tuple[int, int]
) -> Iterator[tuple[list[Interval], list[Interval]]]:
    """Compare addresses in memory; then by the digits that both buffers write them with, and by what is before these.

    A dimension is a digit of an element's address if both buffers start at a multiple of the next larger stride, up to
    a number that they have in common: addresses are counted from there.
    """
    common = min(starts)
    ahead = [start - common for start in starts]
    addresses = [
        [_moved(_ends(box, shape), by) for box in of] for of, shape, by in zip(boxes, shapes, ahead, strict=True)
    ]
    yield addresses[0], addresses[1]
    places = [
        {(stride, size): d for d, (stride, size) in enumerate(zip(_strides(shape), shape, strict=True)) if size > 1}
        for shape in shapes
    ]
    stride = 1
    while size := next((n for s, n in places[0] if s == stride and (s, n) in places[1]), 0):
        if any(by % (stride * size) for by in ahead):
            break
        yield (
            [box[places[0][stride, size]] for box in boxes[0]],
            [box[places[1][stride, size]] for box in boxes[1]],
        )
        stride *= size
    outer = [
        [_moved(_outer_ends(box, shape, stride), by // stride) for box in of]
        for of, shape, by in zip(boxes, shapes, ahead, strict=True)
    ]
    yield outer[0], outer[1]


def _outer_ends(box: Sequence[Interval], shape: tuple[int, ...], stride: int) -> Interval:
    """The ends of a box in units of a stride, of which only larger strides, or equal ones, count."""
    kept = [d for d, s in enumerate(_strides(shape)) if s >= stride and shape[d] > 1]
    if any(a == b for a, b in box):
        return 0, 0
    return _ends([box[d] for d in kept], tuple(shape[d] for d in kept))


def _moved(interval: Interval, by: int) -> Interval:
    return (interval[0] + by, interval[1] + by) if interval[0] < interval[1] else interval


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
