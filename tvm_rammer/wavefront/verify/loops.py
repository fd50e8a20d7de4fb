"""The proof of a program of several steps, by induction over the steps and without unrolling it.

The program means what its operators compute one after another, step after step. So of two accesses of the same bytes,
one of which writes, the one that comes first in that order must have ended before the other begins, whatever steps they
are in. Where a view lies in a step is affine in the step, or periodic; so the least number of steps between two such
accesses is the same in all steps, and what lies further apart follows from it, since a lane does its steps in order.

A run may have fewer steps than there may be (`RGraph.trip_count`, `RGraph.condition`). It is the beginning of the
longest run: no step waits for a later one, so what each lane knows in a step is the same in all runs. Slots that are
counted from the end are other ones then, all by the same number; those of one buffer are all counted so, or none, and
the steps between two accesses remain. Slots that any run touches are those that the longest one touches.

What each lane knows of the others (`steps`) is computed step by step until a step finds the state that the one before
it found: then all further steps find it, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...device import DeviceSpec
from ...errors import VerificationError
from ...ir import ITEM_BYTES, VIEW_ALIGNMENT, Buffer, Place, RGraph, RProgram, Run
from .dependences import Dependences, partners_of_run
from .steps import StepClocks, execute_steps


@dataclass(frozen=True, slots=True)
class Access:
    """An operator's access of a buffer: by which of its parameters, inputs first, and whether it writes."""

    operator: int
    parameter: int
    buffer: int
    writes: bool


def verify_steps(program: RProgram, device: DeviceSpec | None) -> None:
    """Prove a program of several steps; what holds for each instruction by itself is known already.

    Raises
    ------
    VerificationError
        A view leaves its buffer in some step, a byte has two writers, something is read that is not written yet, or an
        order between two accesses is missing.
    """
    accesses = _accesses(program.graph)
    _check_places(program, device)
    for base, touching in accesses.items():
        _check_slots(program, base, touching)
    _check_first(program)
    begins = execute_steps(program)
    dependences = Dependences(program)
    for touching in accesses.values():
        for one in touching:
            for other in touching:
                later = _steps_between(program.graph, one, other) if one.writes or other.writes else None
                if later is not None:
                    _check_order(program, dependences, begins, one, other, later)


def _accesses(graph: RGraph) -> dict[int, list[Access]]:
    """All accesses in the steps after the first, by the buffer that owns the memory."""
    found: dict[int, list[Access]] = {}
    for o, op in enumerate(graph.operators):
        for p, b in enumerate((*op.inputs, *op.outputs)):
            place = graph.buffers[b].place
            found.setdefault(b if place is None else place.base, []).append(Access(o, p, b, p >= len(op.inputs)))
    return found


def _check_places(program: RProgram, device: DeviceSpec | None) -> None:
    buffers = program.graph.buffers
    for buffer in buffers:
        place = buffer.place
        if (buffer.kind == "view") != (place is not None):
            raise _error(program, f"buffer {buffer.name!r} is of kind {buffer.kind} and has the place {place}")
        if place is None:
            continue
        if not 0 <= place.base < len(buffers) or buffers[place.base].place is not None:
            raise _error(program, f"view {buffer.name!r} is a part of buffer {place.base}, which owns no memory")
        base = buffers[place.base]
        alignment = _alignment(buffer, device)
        if buffer.dtype != base.dtype or place.offset % alignment or place.stride % alignment:
            raise _error(
                program,
                f"view {buffer.name!r} of {buffer.dtype} has the place {place} in {base.name!r} of {base.dtype}; it "
                f"needs elements of the same type, and multiples of {alignment} bytes",
            )
        if place.phases < 0 or place.phases == 1 or (place.phases and not place.stride):
            raise _error(program, f"view {buffer.name!r} has the place {place}: such phases mean nothing")
        if place.from_end and (program.graph.trip_count is None or not place.stride):
            raise _error(program, f"view {buffer.name!r} is counted from the last step, which is always the same")
        if place.stride and buffer.nbytes > abs(place.stride):
            raise _error(program, f"view {buffer.name!r} of {buffer.nbytes} bytes has slots of {abs(place.stride)}")
        steps = range(place.phases) if place.phases else (_first_step(program.graph, buffer.name), program.steps - 1)
        for start in map(place.at, steps):
            if start < 0 or start + buffer.nbytes > base.nbytes:
                raise _error(
                    program,
                    f"view {buffer.name!r} at bytes {start} to {start + buffer.nbytes} of {base.name!r}, which has "
                    f"{base.nbytes}",
                )


def _alignment(buffer: Buffer, device: DeviceSpec | None) -> int:
    """The multiple of bytes at which a slot begins: on a GPU that of the longest vector that the buffer can hold."""
    if device is None or device.kind != "cuda":
        return ITEM_BYTES[buffer.dtype]
    return min(VIEW_ALIGNMENT, 1 << (max(1, buffer.nbytes).bit_length() - 1))


def _first_step(graph: RGraph, name: str) -> int:
    """The first step in which a buffer is touched: 1 if all operators that do read something else in step 0."""
    for op in graph.operators:
        in_step_0 = (*(op.first or op.inputs), *op.outputs)
        if any(graph.buffers[b].name == name for b in in_step_0):
            return 0
    return 1


def _check_slots(program: RProgram, base: int, touching: Sequence[Access]) -> None:
    """Prove that a buffer has one writer, slots of one geometry, and that what is read of it was written before."""
    buffers = program.graph.buffers
    name, kind, places = buffers[base].name, buffers[base].kind, [buffers[a.buffer].place for a in touching]
    writes = [a for a in touching if a.writes]
    if not writes:
        if kind in ("intermediate", "output"):
            raise _error(program, f"buffer {name!r} is read, and no operator writes it")
        return
    if kind in ("input", "constant"):
        raise _error(program, f"buffer {name!r} is of kind {kind}, and an operator writes it")
    if len(writes) > 1:
        raise _error(program, f"buffer {name!r} has {len(writes)} writers; in a loop each has one")
    if len({_geometry(place) for place in places}) > 1:
        raise _error(program, f"buffer {name!r} is touched in slots of several sizes, or as a whole and slot by slot")
    (write,), nbytes = writes, buffers[writes[0].buffer].nbytes
    place = buffers[write.buffer].place
    slots = 1 if place is None or not place.stride else (place.phases or program.steps)
    whole = slots * nbytes == buffers[base].nbytes
    if place is not None and place.stride and not place.phases:
        ends = sorted((place.at(0), place.at(program.steps - 1)))
        whole = whole and ends == [0, buffers[base].nbytes - nbytes]
    elif place is not None:
        whole = whole and not place.offset
    if not whole:
        raise _error(
            program, f"buffer {name!r} of {buffers[base].nbytes} bytes is written in {slots} slots of {nbytes}"
        )
    for read in (a for a in touching if not a.writes):
        _check_written(program, write, read)


def _geometry(place: Place | None) -> tuple[int, int, int, bool]:
    if place is None or not place.stride:
        return 0, 0, 0, False
    return place.offset, place.stride, place.phases, place.from_end


def _check_written(program: RProgram, write: Access, read: Access) -> None:
    """Prove that what is read was written in the same step before, or in an earlier step that there was."""
    buffers, op = program.graph.buffers, program.graph.operators[read.operator]
    places = [buffers[a.buffer].place for a in (write, read)]
    since = (places[0].ahead if places[0] else 0) - (places[1].ahead if places[1] else 0)
    if places[0] is not None and places[0].phases:
        since %= places[0].phases
    if not since and write.operator >= read.operator:
        since = places[0].phases if places[0] and places[0].phases else 1 if not _geometry(places[0])[1] else -1
    starts = 1 if op.first and op.first[read.parameter] != read.buffer else 0
    if since < 0 or since > starts:
        raise _error(
            program,
            f"operator {op.name!r} reads {buffers[read.buffer].name!r}, which was written {since} steps before, from "
            f"step {starts} on",
        )


def _check_first(program: RProgram) -> None:
    """Prove that what is read in step 0 alone comes from outside, and looks like what is read later."""
    graph = program.graph
    for op in graph.operators:
        if op.first and len(op.first) != len(op.inputs):
            raise _error(program, f"operator {op.name!r} reads {len(op.inputs)} buffers, but {len(op.first)} in step 0")
        for b, later in zip(op.first, op.inputs, strict=False):
            if b == later:
                continue
            first, then = graph.buffers[b], graph.buffers[later]
            if first.kind not in ("input", "constant") or (first.dtype, first.nbytes) != (then.dtype, then.nbytes):
                raise _error(
                    program,
                    f"operator {op.name!r} reads {first.name!r} in step 0 in the place of {then.name!r}; it must be an "
                    "input or a constant of the same size",
                )


def _steps_between(graph: RGraph, one: Access, other: Access) -> int | None:
    """After how many steps the second access first comes to the bytes of the first one; None for never."""
    places = [graph.buffers[a.buffer].place for a in (one, other)]
    after = one.operator < other.operator
    _, stride, phases, _ = _geometry(places[0])
    if not stride:
        overlap = _static_overlap(graph, one.buffer, other.buffer)
        return (0 if after else 1) if overlap else None
    steps = (places[0].ahead if places[0] else 0) - (places[1].ahead if places[1] else 0)
    if phases:
        steps %= phases
        return steps if steps or after else phases
    return steps if steps > 0 or (steps == 0 and after) else None


def _static_overlap(graph: RGraph, one: int, other: int) -> bool:
    (a, b), (c, d) = ((e.start, e.end) for e in (graph.extent(one), graph.extent(other)))
    return a < d and c < b


def _check_order(
    program: RProgram,
    dependences: Dependences,
    begins: Sequence[StepClocks],
    one: Access,
    other: Access,
    later: int,
) -> None:
    touching = dependences.between(one.operator, one.parameter, other.operator, other.parameter)
    lanes = program.lanes
    everything = (1 << program.kernels[one.operator].num_rtasks) - 1
    runs = list(_runs(program, one.operator))
    for v, n, run in _runs(program, other.operator):
        needed = everything if touching is None else partners_of_run(touching, run)
        for u, m, first in runs:
            if not any(needed >> t & 1 for t in first.indices()):
                continue
            for step, known in enumerate(begins):
                ended = known[v][n][u] if u != v else n
                if step >= later and ended <= m - later * len(lanes[u]):
                    raise _out_of_order(program, one, other, later, (u, v))


def _runs(program: RProgram, operator: int) -> Iterator[tuple[int, int, Run]]:
    return ((v, n, i) for v, n, i in program.instructions() if isinstance(i, Run) and i.operator == operator)


def _out_of_order(
    program: RProgram, one: Access, other: Access, later: int, lanes: tuple[int, int]
) -> VerificationError:
    operators, buffers = program.graph.operators, program.graph.buffers
    does = ["writes" if a.writes else "reads" for a in (one, other)]
    when = f"{later} steps later" if later else "in the same step"
    return _error(
        program,
        f"{operators[other.operator].name!r} {does[1]} {buffers[other.buffer].name!r} on lane {lanes[1]} {when}, while "
        f"{operators[one.operator].name!r} on lane {lanes[0]} may not have ended, which {does[0]} "
        f"{buffers[one.buffer].name!r}; a wait is missing",
    )


def _error(program: RProgram, message: str) -> VerificationError:
    return VerificationError(f"program {program.name!r}: {message}")
