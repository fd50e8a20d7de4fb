"""The rules that one instruction, kernel or buffer can break by itself, and the proof of all others in its order."""

import math
from collections.abc import Iterator
from itertools import pairwise

from ...device import DeviceSpec
from ...errors import VerificationError
from ...ir import ALIGNMENT, Instruction, RProgram, Run, Signal, TripCount, Wait
from .execution import execute
from .exits import check_exit
from .kept import check_kept
from .limits import check_limits
from .loops import verify_steps
from .memory import check_memory
from .order import check_dependences, check_workspace
from .residency import check_residency


def verify(program: RProgram, *, device: DeviceSpec | None = None) -> None:
    """Prove that a program computes its graph in every legal interleaving of its lanes.

    Proved are: each rTask of each operator runs exactly once, with a kernel of its operator's function;
    no lane deadlocks; an rTask begins after all rTasks have ended that write what it reads, by the footprints
    of the kernels; each byte has one writer, whatever views there are of it; buffers that share memory are never
    alive together; each wait is for all arrivals at its event,
    so that counters that are never reset mean the same in every run; of a program of several steps all that in each
    of them, and across them, however many of them a run has (`loops`), and that no lane begins a step before it
    knows that there is one (`exits`); what vEUs keep over all steps are slices of
    constants, apart from each other; each event is signalled and waited for; no index leaves 32 bits; all lanes can be
    resident at once.

    Parameters
    ----------
    program : RProgram
    device : DeviceSpec, optional
        Where it is to run; without one it is not asked whether all lanes can be resident.

    Raises
    ------
    VerificationError
        The first rule found broken, with the operators, buffers and lanes concerned.
    """
    _check_graph(program)
    if program.steps == 1:
        check_memory(program)
    _check_kernels(program)
    check_limits(program)
    _check_instructions(program)
    check_kept(program, device)
    if device is not None:
        check_residency(program, device)
    _check_rtasks(program)
    _check_arrivals(program)
    _check_offsets(program)
    if program.steps == 1:
        execution = execute(program)
        check_dependences(program, execution)
        check_workspace(program, execution)
    else:
        _check_apart(program)
        check_exit(program)
        verify_steps(program, device)
    _check_events(program)


def _error(program: RProgram, message: str) -> VerificationError:
    return VerificationError(f"program {program.name!r}: {message}")


def _instructions(program: RProgram) -> Iterator[tuple[str, Instruction]]:
    for v, lane in enumerate(program.lanes):
        for n, instruction in enumerate(lane):
            yield f"lane {v}, instruction {n}", instruction


def _check_graph(program: RProgram) -> None:
    graph = program.graph
    for op in graph.operators:
        if bad := [b for b in op.touched() if not 0 <= b < len(graph.buffers)]:
            raise _error(program, f"operator {op.name!r} uses buffer {bad[0]} of {len(graph.buffers)}")
        if op.first and graph.steps == 1:
            raise _error(program, f"operator {op.name!r} reads other buffers in step 0, and there is no other step")
    if graph.trip_count is not None:
        _check_trip_count(program, graph.trip_count)
    if program.steps == 1 and (graph.condition is not None or program.exit is not None):
        raise _error(program, "a condition says whether there is another step, and there is one at most")
    if graph.steps < 1:
        raise _error(program, f"{graph.steps} steps; there is at least one")


def _check_trip_count(program: RProgram, count: TripCount) -> None:
    """What says how many steps there are comes from outside, and is one number."""
    buffers = program.graph.buffers
    told = buffers[count.buffer] if 0 <= count.buffer < len(buffers) else None
    if told is None or (told.kind, told.dtype, math.prod(told.shape)) != ("input", "int32", 1):
        raise _error(program, f"the number of steps is in {told}; it must be an input, one number of int32")
    if count.rows < 1 or program.steps == 1:
        raise _error(program, f"{count.rows} rows a step, and at most {program.steps} steps; there is nothing to count")


def _check_kernels(program: RProgram) -> None:
    operators, kernels = program.graph.operators, program.kernels
    if len(kernels) != len(operators):
        raise _error(program, f"{len(kernels)} kernels for {len(operators)} operators")
    for op, kernel in zip(operators, kernels, strict=True):
        if kernel.function != op.function:
            raise _error(
                program,
                f"operator {op.name!r} calls {op.function!r}, its kernel {kernel.name!r} is for {kernel.function!r}",
            )


def _check_instructions(program: RProgram) -> None:
    for where, i in _instructions(program):
        if isinstance(i, Run):
            if not 0 <= i.operator < len(program.kernels):
                raise _error(program, f"{where}: operator {i.operator} of {len(program.kernels)} does not exist")
            name, total = program.graph.operators[i.operator].name, program.kernels[i.operator].num_rtasks
            if i.count < 1 or i.step < 1:
                raise _error(program, f"{where}: {name!r} runs {i.count} rTasks with step {i.step}; both start at 1")
            if i.start < 0 or i.indices()[-1] >= total:
                raise _error(
                    program, f"{where}: {name!r} has rTasks 0 to {total - 1}, not {i.start} to {i.indices()[-1]}"
                )
        elif isinstance(i, Signal | Wait):
            if not 0 <= i.event < program.num_events:
                raise _error(program, f"{where}: event {i.event} of {program.num_events} does not exist")
            if isinstance(i, Wait) and not 0 <= i.back < program.steps:
                raise _error(program, f"{where}: a wait for {i.back} steps back, in a program of {program.steps}")
        else:
            raise _error(program, f"{where}: {i!r} is neither Run, Signal nor Wait")


def _check_rtasks(program: RProgram) -> None:
    seen = [bytearray(kernel.num_rtasks) for kernel in program.kernels]
    for where, i in _instructions(program):
        if not isinstance(i, Run):
            continue
        part = slice(i.start, i.indices()[-1] + 1, i.step)
        if any(seen[i.operator][part]):
            index = next(t for t in i.indices() if seen[i.operator][t])
            raise _error(program, f"{where}: rTask {index} of {program.graph.operators[i.operator].name!r} runs twice")
        seen[i.operator][part] = b"\1" * i.count
    for op, done in zip(program.graph.operators, seen, strict=True):
        if missing := done.count(0):
            raise _error(
                program, f"{missing} of {len(done)} rTasks of {op.name!r} never run, the first is {done.index(0)}"
            )


def _check_arrivals(program: RProgram) -> None:
    """A GPU's counters only grow: in run r a wait is for `arrivals * r`, which means nothing for a part of them."""
    signals = [0] * program.num_events
    for _, i in _instructions(program):
        if isinstance(i, Signal):
            signals[i.event] += 1
    for where, i in _instructions(program):
        if isinstance(i, Wait) and (i.arrivals != signals[i.event] or not i.arrivals):
            raise _error(
                program,
                f"{where}: waits for {i.arrivals} arrivals at event {i.event}, which gets {signals[i.event]}; a wait "
                "is for all of them",
            )


def _check_events(program: RProgram) -> None:
    awaited = {i.event for _, i in _instructions(program) if isinstance(i, Wait)}
    if idle := [event for event in range(program.num_events) if event not in awaited]:
        raise _error(program, f"nobody waits for event {idle[0]} of {program.num_events}; leave it and its signals out")


def _check_apart(program: RProgram) -> None:
    """In a loop no two buffers share memory: the one would be written again in the next step."""
    buffers = program.graph.buffers
    spans = sorted((start, start + buffers[b].nbytes, b) for b, start in program.offsets.items() if buffers[b].nbytes)
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            names = buffers[one].name, buffers[other].name
            raise _error(program, f"buffers {names[0]!r} and {names[1]!r} of a loop share memory at byte {start}")


def _check_offsets(program: RProgram) -> None:
    buffers = program.graph.buffers
    for b in program.offsets:
        if not 0 <= b < len(buffers):
            raise _error(program, f"an offset is given for buffer {b} of {len(buffers)}")
    for b, buffer in enumerate(buffers):
        offset = program.offsets.get(b)
        if buffer.kind != "intermediate":
            if offset is not None:
                raise _error(
                    program, f"buffer {buffer.name!r} is of kind {buffer.kind} but has an offset in the workspace"
                )
        elif offset is None:
            raise _error(program, f"intermediate buffer {buffer.name!r} has no offset in the workspace")
        elif offset % ALIGNMENT:
            raise _error(program, f"buffer {buffer.name!r} at offset {offset}: not a multiple of {ALIGNMENT}")
        elif offset < 0 or offset + buffer.nbytes > program.workspace_bytes:
            raise _error(
                program,
                f"buffer {buffer.name!r} at bytes {offset} to {offset + buffer.nbytes} leaves the workspace of "
                f"{program.workspace_bytes}",
            )
