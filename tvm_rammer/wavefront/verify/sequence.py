"""The order between the programs of one schedule: they are launched one after another."""

from collections.abc import Sequence
from dataclasses import replace

from ...errors import VerificationError
from ...ir import Buffer, Copies, Place, RGraph, ROperator, RProgram
from .views import check_views


def verify_sequence(graph: RGraph, programs: Sequence[RProgram], copies: Copies | None = None) -> None:
    """Prove that programs, launched in their order, compute a graph.

    Proved are: each operator of the graph is in exactly one program, and calls there what it calls in the graph, or is
    in none and would copy each of its bytes to where that byte lies; a program reads only inputs and constants of the
    graph, what it writes itself, and what a program before it leaves behind; the graph's outputs are left behind. A
    program leaves its outputs behind; its workspace is lost.

    Parameters
    ----------
    graph : RGraph
        Without views.
    programs : sequence of RProgram
        In launch order. Each is right by itself: `verify` proves it.
    copies : Copies, optional
        What the functions move that only copy; it is trusted.

    Raises
    ------
    VerificationError
        The first rule found broken.
    """
    _check_operators(graph, programs, copies or {})
    _check_steps(graph, programs)
    constants = {b.name: _type(b) for b in graph.buffers if b.kind == "constant"}
    given = {b.name: _type(b) for b in graph.buffers if b.kind == "input"}
    for program in programs:
        for buffer in program.graph.buffers:
            known = {"input": given, "constant": constants}.get(buffer.kind)
            if known is not None and known.get(buffer.name) != _type(buffer):
                raise VerificationError(
                    f"program {program.name!r} reads {buffer.name!r}, which neither the graph nor a program before it "
                    "provides in that shape and type; the programs are in the wrong order, or an output is missing"
                )
        for buffer in program.graph.buffers:
            if buffer.kind == "output":
                if buffer.name in given:
                    raise VerificationError(f"program {program.name!r} writes {buffer.name!r}, which exists already")
                given[buffer.name] = _type(buffer)
    if lost := [b.name for b in graph.buffers if b.kind == "output" and given.get(b.name) != _type(b)]:
        raise VerificationError(f"no program has output {lost[0]!r} of graph {graph.name!r} among its outputs")


def _check_operators(graph: RGraph, programs: Sequence[RProgram], copies: Copies) -> None:
    wanted = {op.name: _call(graph, op) for op in graph.operators}
    owner: dict[str, str] = {}
    for program in programs:
        for op in program.graph.operators:
            if op.name in owner:
                raise VerificationError(f"operator {op.name!r} is in {owner[op.name]!r} and in {program.name!r}")
            if wanted.get(op.name) != _call(program.graph, op):
                raise VerificationError(
                    f"operator {op.name!r} of program {program.name!r} is not the one of graph {graph.name!r}"
                )
            owner[op.name] = program.name
    missing = [op for op in graph.operators if op.name not in owner]
    if lost := [op.name for op in missing if op.function not in copies]:
        raise VerificationError(f"operator {lost[0]!r} of graph {graph.name!r} is in none of its programs")
    if missing:
        check_views(graph, missing, programs, copies)


def _check_steps(graph: RGraph, programs: Sequence[RProgram]) -> None:
    """Prove that a loop is a program as it is: with as many steps, and each view where the graph has it."""
    for program in programs:
        if (
            program.steps != graph.steps
            or _counted_by(program.graph) != _counted_by(graph)
            or (graph.steps > 1 and len(programs) > 1)
        ):
            raise VerificationError(
                f"program {program.name!r} has {program.steps} steps {_counted_by(program.graph)}, and graph "
                f"{graph.name!r} {graph.steps} {_counted_by(graph)}; a loop is one program"
            )
    if graph.steps == 1:
        return
    (program,) = programs
    places = {b.name: _place(program.graph, b) for b in program.graph.buffers}
    for buffer in graph.buffers:
        if buffer.place is not None and places.get(buffer.name, _place(graph, buffer)) != _place(graph, buffer):
            raise VerificationError(
                f"program {program.name!r} has {buffer.name!r} at {places[buffer.name]}, the graph at "
                f"{_place(graph, buffer)}"
            )


def _counted_by(graph: RGraph) -> str:
    count = graph.trip_count
    if graph.condition is not None:
        return f"at most, while {graph.buffers[graph.condition].name!r}"
    return "always" if count is None else f"at most, by {graph.buffers[count.buffer].name!r} / {count.rows}"


def _place(graph: RGraph, buffer: Buffer) -> tuple[str, Place] | None:
    place = buffer.place
    if place is None:
        return None
    return graph.buffers[place.base].name, replace(place, base=0)


def _type(buffer: Buffer) -> tuple[tuple[int, ...], str]:
    return buffer.shape, buffer.dtype


def _call(graph: RGraph, op: ROperator) -> tuple[str, tuple[tuple[str, ...], ...]]:
    return op.function, tuple(tuple(graph.buffers[b].name for b in of) for of in (op.inputs, op.outputs, op.first))
