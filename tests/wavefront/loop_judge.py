"""Is a program of several steps right? Judged by its executions, step by step and byte by byte, with counters that only
grow, and without a look at the verifier."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tvm_rammer.ir import Buffer, RGraph, RProgram, Run, Signal, Wait

from .tiled_graphs import touched

Position = tuple[int, int]
"""A lane, and an instruction of it counted through all steps."""


@dataclass(frozen=True, slots=True)
class _Access:
    position: Position
    order: tuple[int, int]
    memory: str
    mask: int
    writes: bool


def is_right(program: RProgram, graph: RGraph) -> bool:
    """Whether the program computes what the graph does, in every execution, however many steps the run has."""
    if graph.trip_count is not None and program.graph.trip_count is not None:
        runs = range(1, graph.steps + 1)
        return program.steps == graph.steps and all(is_right(_run(program, n), of_run(graph, n)) for n in runs)
    return (
        program.steps == graph.steps
        and (program.graph.trip_count is None) == (graph.trip_count is None)
        and data_flow(program.graph) == data_flow(graph)
        and _each_once(program)
        and not _stuck(program)
        and _ordered(program)
        and _ends_together(program, graph)
    )


def _ends_together(program: RProgram, graph: RGraph) -> bool:
    """Whether all lanes end with the step whose condition is false, and none with a part of it.

    They leave where they wait for the event of the condition. Whoever leaves has done his step, and nobody has begun
    the next one, however late the condition of this one is.
    """
    names = [g.buffers[g.condition].name if g.condition is not None else "" for g in (graph, program.graph)]
    if names[0] != names[1] or (program.exit is None) != (not names[0]):
        return False
    if not names[0]:
        return True
    decides = next(o for o, op in enumerate(program.graph.operators) if program.graph.condition in op.outputs)
    at = [(v, n) for v, n, i in program.instructions() if isinstance(i, Run) and i.operator == decides]
    leaves = {(v, n) for v, n, i in program.instructions() if isinstance(i, Wait) and i.event == program.exit}
    if leaves != {(v, len(lane) - 1) for v, lane in enumerate(program.lanes) if lane} or len(at) != 1:
        return False
    (u, m), steps = at[0], range(program.steps)
    held = [_longest(program, (u, step * len(program.lanes[u]) + m)) for step in steps]
    return all(
        there < (step + 1) * len(lane)
        for step, reached in zip(steps, held, strict=True)
        for there, lane in zip(reached, program.lanes, strict=True)
        if lane
    )


def of_run(graph: RGraph, steps: int) -> RGraph:
    """The graph of a run of so many steps, of a graph that has them from an input: what it says, written out."""

    def fixed(buffer: Buffer) -> Buffer:
        place = buffer.place
        if place is None or not place.from_end:
            return buffer
        return replace(buffer, place=replace(place, ahead=place.ahead + graph.steps - steps, from_end=False))

    return replace(graph, buffers=tuple(map(fixed, graph.buffers)), steps=steps, trip_count=None)


def _run(program: RProgram, steps: int) -> RProgram:
    return replace(program, graph=of_run(program.graph, steps))


def data_flow(graph: RGraph) -> dict[str, tuple[object, ...]] | None:
    """What each byte of the outputs is made of, if all is computed in order; None where it leaves a buffer."""
    memory: dict[str, list[object]] = {
        b.name: [(b.name, n) for n in range(b.nbytes)] for b in graph.buffers if b.place is None
    }
    for step in range(graph.steps):
        for op in graph.operators:
            read = []
            for b in op.first if op.first and not step else op.inputs:
                extent = graph.extent(b, step)
                if not 0 <= extent.start <= extent.end <= graph.buffers[extent.base].nbytes:
                    return None
                read.append(tuple(memory[graph.buffers[extent.base].name][extent.start : extent.end]))
            value = hash((op.name, tuple(read)))
            for b in op.outputs:
                extent = graph.extent(b, step)
                if not 0 <= extent.start <= extent.end <= graph.buffers[extent.base].nbytes:
                    return None
                memory[graph.buffers[extent.base].name][extent.start : extent.end] = [
                    (value, n) for n in range(extent.end - extent.start)
                ]
    return {b.name: tuple(memory[b.name]) for b in graph.buffers if b.kind == "output"}


def _each_once(program: RProgram) -> bool:
    done = sorted((i.operator, t) for _, _, i in program.instructions() if isinstance(i, Run) for t in i.indices())
    return done == [(o, t) for o, kernel in enumerate(program.kernels) for t in range(kernel.num_rtasks)]


def _stuck(program: RProgram) -> bool:
    at = _longest(program, None)
    return any(n < program.steps * len(lane) for n, lane in zip(at, program.lanes, strict=True))


def _longest(program: RProgram, held: Position | None) -> list[int]:
    """How far all lanes get in the longest execution in which one instruction does not end."""
    at, arrived = [0] * len(program.lanes), [0] * program.num_events
    moved = True
    while moved:
        moved = False
        for v, lane in enumerate(program.lanes):
            while at[v] < program.steps * len(lane) and (v, at[v]) != held:
                step, n = divmod(at[v], len(lane))
                i = lane[n]
                if isinstance(i, Wait) and arrived[i.event] < i.arrivals * (step + 1 - i.back):
                    break
                if isinstance(i, Signal):
                    arrived[i.event] += 1
                at[v] += 1
                moved = True
    return at


def _ordered(program: RProgram) -> bool:
    accesses = list(_accesses(program))
    by_memory: dict[str, list[_Access]] = {}
    for access in accesses:
        by_memory.setdefault(access.memory, []).append(access)
    after = {position: _longest(program, position) for position in {a.position for a in accesses}}
    for touching in by_memory.values():
        for early in touching:
            for late in touching:
                if early.order < late.order and early.mask & late.mask and (early.writes or late.writes):
                    (u, m), (v, n) = early.position, late.position
                    # In the lane of the early one what follows begins after its end.
                    if (n <= m) if u == v else after[early.position][v] >= n:
                        return False
    return True


def _accesses(program: RProgram) -> Iterator[_Access]:
    """All accesses of memory that is written, by the `Run`s of all steps; the workspace is one memory."""
    graph = program.graph
    written = {graph.extent(b).base for op in graph.operators for b in op.outputs}
    for v, lane in enumerate(program.lanes):
        for step in range(program.steps):
            for n, i in enumerate(lane):
                if not isinstance(i, Run):
                    continue
                op, kernel = graph.operators[i.operator], program.kernels[i.operator]
                inputs = op.first if op.first and not step else op.inputs
                for p, b in enumerate((*inputs, *op.outputs)):
                    extent, writes = graph.extent(b, step), p >= len(inputs)
                    if extent.base not in written:
                        continue
                    shape = graph.buffers[b].shape
                    cells = {int(c) for t in i.indices() for c in touched(kernel, p, shape, t, written=writes)}
                    offset = program.offsets.get(extent.base)
                    memory = graph.buffers[extent.base].name if offset is None else "workspace"
                    start = extent.start + (offset or 0)
                    mask = sum(1 << c + start for c in cells if c + start >= 0)
                    position = (v, step * len(lane) + n)
                    yield _Access(position, (step, i.operator), memory, mask, writes)
