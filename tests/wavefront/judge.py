"""Is a program right in every interleaving and every run? Judged by executions, byte by byte, without a look at the
verifier. Views are bytes of the buffer that they are a part of.

Counters only grow and a lane has no choices. So among all executions in which some `Run` never ends there is a longest
one: let every other lane run as far as it can. What begins there may overlap that `Run`, or come before its end;
what does not begin there comes after its end in every execution.

A GPU's counters are never reset: a wait for some of the arrivals at an event is over at once in a late run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from tvm_rammer.ir import RProgram, Run, Signal, Wait

from .tiled_graphs import touched

Position = tuple[int, int]
"""A lane and a position in it."""


@dataclass(frozen=True, slots=True)
class _Access:
    """The bytes of a buffer that a `Run` touches; bit n is byte n of the buffer, which is no view."""

    position: Position
    operator: int
    buffer: int
    mask: int


def is_right(program: RProgram) -> bool:
    """Whether in every run each rTask runs once, no lane waits for ever, and reads see what was written for them."""
    late = in_a_late_run(program)
    return _is_right(program) and (late == program or _is_right(late))


def in_a_late_run(program: RProgram) -> RProgram:
    """What a GPU does in a late run: without the waits whose arrivals the runs before have brought already."""
    given = [i.event for lane in program.lanes for i in lane if isinstance(i, Signal)]
    lanes = (
        tuple(i for i in lane if not (isinstance(i, Wait) and i.arrivals < given.count(i.event)))
        for lane in program.lanes
    )
    return replace(program, lanes=tuple(lanes))


def _is_right(program: RProgram) -> bool:
    started = _longest(program, None)
    runs = list(_runs(program))
    if not _each_once(program) or any(position not in started for position, _ in runs) or _stuck(program):
        return False
    after = {position: _longest(program, position) for position, _ in runs}
    reads, writes = _accesses(program)

    def may_precede_end(late: Position, early: Position) -> bool:
        """Whether `late` may begin before `early` has ended."""
        if late[0] == early[0]:
            return late[1] <= early[1]  # a run is over only when it is over
        return late in after[early]

    writers: dict[int, list[_Access]] = {}
    for write in writes:
        if any(w.mask & write.mask and w.operator != write.operator for w in writers.get(write.buffer, ())):
            return False
        writers.setdefault(write.buffer, []).append(write)
    if any(read.mask & ~reduce(or_, (w.mask for w in writers[read.buffer])) for read in reads):
        return False
    for read in reads:
        for write in writers.get(read.buffer, ()):
            if write.mask & read.mask and may_precede_end(read.position, write.position):
                return False
    return all(
        not _spoils(write, read, writers[read.buffer], program.offsets, may_precede_end)
        for read in reads
        if read.buffer in program.offsets
        for write in writes
        if write.buffer != read.buffer and write.buffer in program.offsets
    )


def _spoils(write: _Access, read: _Access, writers: list[_Access], offsets: dict[int, int], may_precede_end) -> bool:
    """Whether a write to another buffer may come between the writing and the reading of a byte."""
    shared = (write.mask << offsets[write.buffer]) & (read.mask << offsets[read.buffer])
    if not shared or not may_precede_end(write.position, read.position):
        return False
    mine = [w for w in writers if (w.mask << offsets[w.buffer]) & shared]
    return any(may_precede_end(w.position, write.position) for w in mine)


def _runs(program: RProgram) -> Iterator[tuple[Position, Run]]:
    for v, lane in enumerate(program.lanes):
        for n, instruction in enumerate(lane):
            if isinstance(instruction, Run):
                yield (v, n), instruction


def _each_once(program: RProgram) -> bool:
    done = sorted((run.operator, index) for _, run in _runs(program) for index in run.indices())
    return done == [(o, i) for o, kernel in enumerate(program.kernels) for i in range(kernel.num_rtasks)]


def _stuck(program: RProgram) -> bool:
    arrived: dict[int, int] = {}
    _advance(program, arrived, at := [0] * len(program.lanes), None)
    return any(n < len(lane) for n, lane in zip(at, program.lanes, strict=True))


def _longest(program: RProgram, held: Position | None) -> frozenset[Position]:
    """All `Run`s that begin in the longest execution in which the held one does not end."""
    at = [0] * len(program.lanes)
    _advance(program, {}, at, held)
    reached = {(v, n) for v, end in enumerate(at) for n in range(end) if isinstance(program.lanes[v][n], Run)}
    return frozenset(reached | ({held} if held and at[held[0]] == held[1] else set()))


def _advance(program: RProgram, arrived: dict[int, int], at: list[int], held: Position | None) -> None:
    """Let each lane run as far as it can, again and again, until nobody can."""
    moved = True
    while moved:
        moved = False
        for v, lane in enumerate(program.lanes):
            while at[v] < len(lane) and (v, at[v]) != held:
                instruction = lane[at[v]]
                if isinstance(instruction, Wait) and arrived.get(instruction.event, 0) < instruction.arrivals:
                    break
                if isinstance(instruction, Signal):
                    arrived[instruction.event] = arrived.get(instruction.event, 0) + 1
                at[v] += 1
                moved = True


def _accesses(program: RProgram) -> tuple[list[_Access], list[_Access]]:
    """All reads and all writes of buffers that operators write, one for each `Run` and buffer."""
    reads, writes, graph = [], [], program.graph
    places = [b.place for b in graph.buffers]
    made = {b if (place := places[b]) is None else place.base for op in graph.operators for b in op.outputs}
    for position, run in _runs(program):
        op, kernel = graph.operators[run.operator], program.kernels[run.operator]
        for p, b in enumerate((*op.inputs, *op.outputs)):
            written, shape = p >= len(op.inputs), graph.buffers[b].shape
            cells = {int(c) for i in run.indices() for c in touched(kernel, p, shape, i, written=written)}
            owner, first = (b, 0) if (place := graph.buffers[b].place) is None else (place.base, place.offset)
            if owner in made and cells:
                access = _Access(position, run.operator, owner, sum(1 << c + first for c in cells))
                (writes if written else reads).append(access)
    return reads, writes
