"""Which bytes each buffer of a program has, and that each byte has one writer, for the verifier."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ...errors import VerificationError
from ...ir import VIEW_ALIGNMENT, Buffer, RGraph, RProgram

Bytes = tuple[int, int]
"""The first byte of a buffer that owns memory, and the one past the last."""


class Memory:
    """The bytes of each buffer, and who writes them.

    Parameters
    ----------
    graph : RGraph
        Whose views are right: `check_memory` proves it.
    """

    def __init__(self, graph: RGraph) -> None:
        self._buffers = graph.buffers
        self._writes: dict[int, list[tuple[Bytes, int, int]]] = {}
        for o, op in enumerate(graph.operators):
            for n, b in enumerate(op.outputs):
                self._writes.setdefault(self.owner(b), []).append((self.bytes_of(b), o, n))
        for writes in self._writes.values():
            writes.sort()

    def owner(self, buffer: int) -> int:
        """The buffer that a buffer is a part of; itself where it is no view."""
        place = self._buffers[buffer].place
        return buffer if place is None else place.base

    def bytes_of(self, buffer: int) -> Bytes:
        """Where it lies in its owner."""
        place = self._buffers[buffer].place
        first = 0 if place is None else place.offset
        return first, first + self._buffers[buffer].nbytes

    def writes_of(self, owner: int) -> Sequence[tuple[Bytes, int, int]]:
        """All writes to a buffer that owns memory, by their bytes: (bytes, operator, which of its outputs)."""
        return self._writes.get(owner, [])

    def writers_of(self, buffer: int) -> Iterator[tuple[int, int]]:
        """Who writes bytes of a buffer, as (operator, which of its outputs)."""
        first, end = self.bytes_of(buffer)
        return ((o, n) for (start, stop), o, n in self.writes_of(self.owner(buffer)) if start < end and first < stop)


def check_memory(program: RProgram) -> None:
    """Prove that views lie within their buffers, that each byte has one writer at most, and no reader lacks one.

    Raises
    ------
    VerificationError
        A view that leaves its buffer, two writers of a byte, or a byte that is read, or left behind, and never written.
    """
    graph = program.graph
    for buffer in graph.buffers:
        _check_place(program, buffer)
    memory = Memory(graph)
    for o, buffer in enumerate(graph.buffers):
        writes = memory.writes_of(o)
        if writes and buffer.kind in ("input", "constant"):
            name = graph.operators[writes[0][1]].name
            raise _error(program, f"operator {name!r} writes {buffer.name!r}, which is of kind {buffer.kind}")
        for ((_, end), one, _), ((start, _), other, _) in pairwise(writes):
            if start < end:
                names = [graph.operators[w].name for w in (one, other)]
                raise _error(
                    program, f"buffer {buffer.name!r} is written by {names[0]!r} and by {names[1]!r} at byte {start}"
                )
    for op in graph.operators:
        for b in op.inputs:
            owner = graph.buffers[memory.owner(b)]
            if owner.kind in ("intermediate", "output") and (hole := _unwritten(memory, b)) is not None:
                what = f"operator {op.name!r} reads {graph.buffers[b].name!r}"
                raise _error(program, f"{what}, which no operator writes" + (f" at byte {hole}" if hole else ""))
    for o, buffer in enumerate(graph.buffers):
        if buffer.kind == "output" and memory.writes_of(o) and (hole := _unwritten(memory, o)) is not None:
            raise _error(program, f"output {buffer.name!r} is not written at byte {hole}")


def _check_place(program: RProgram, buffer: Buffer) -> None:
    buffers, place = program.graph.buffers, buffer.place
    if (buffer.kind == "view") != (place is not None):
        raise _error(program, f"buffer {buffer.name!r} is of kind {buffer.kind} and has the place {place}")
    if place is None:
        return
    if not 0 <= place.base < len(buffers) or buffers[place.base].kind == "view":
        raise _error(program, f"view {buffer.name!r} is a part of buffer {place.base}, which owns no memory")
    base = buffers[place.base]
    if place.offset < 0 or place.offset + buffer.nbytes > base.nbytes or buffer.dtype != base.dtype:
        raise _error(
            program,
            f"view {buffer.name!r} at bytes {place.offset} to {place.offset + buffer.nbytes} of {buffer.dtype} is no "
            f"part of {base.name!r}, which has {base.nbytes} bytes of {base.dtype}",
        )
    if place.offset % VIEW_ALIGNMENT:
        raise _error(program, f"view {buffer.name!r} at offset {place.offset}: not a multiple of {VIEW_ALIGNMENT}")


def _unwritten(memory: Memory, buffer: int) -> int | None:
    """The first byte of a buffer that nobody writes, counted in its owner."""
    at, end = memory.bytes_of(buffer)
    for (start, stop), _, _ in memory.writes_of(memory.owner(buffer)):
        if start > at:
            break
        at = max(at, stop)
    return at if at < end else None


def _error(program: RProgram, message: str) -> VerificationError:
    return VerificationError(f"program {program.name!r}: {message}")
