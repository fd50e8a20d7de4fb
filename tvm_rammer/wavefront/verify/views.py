"""Operators that are in no program: each byte that one would copy lies already where it is to be."""

from collections.abc import Sequence
from dataclasses import replace

from ...errors import VerificationError
from ...ir import Buffer, Copies, Place, RGraph, ROperator, RProgram

Address = tuple[str, Place, int]
"""The name of a buffer that owns memory, how the view moves in it, and a byte in it."""


def check_views(graph: RGraph, missing: Sequence[ROperator], programs: Sequence[RProgram], copies: Copies) -> None:
    """Prove that operators which only copy have nothing to do.

    Parameters
    ----------
    graph : RGraph
        Without views, but for the slots of a loop.
    missing : sequence of ROperator
        Operators of the graph, in its order, that are in no program; the function of each is in `copies`.
    programs : sequence of RProgram
    copies : Copies

    Raises
    ------
    VerificationError
        A buffer lies in different places in two programs, or a byte elsewhere than where it would be copied to.
    """
    addresses = _addresses(graph, programs)
    pending = [(op, move) for op in missing for move in copies[op.function]]
    # What no program touches lies where its neighbours demand it; a pass that learns nothing more is the last.
    while pending:
        left = []
        for op, move in pending:
            source, target = graph.buffers[op.inputs[move.source]].name, graph.buffers[op.outputs[move.target]].name
            distance = move.source_start - move.target_start
            if source in addresses:
                owner, moving, start = addresses[source]
                wanted = owner, moving, start + distance
                if addresses.setdefault(target, wanted) != wanted:
                    raise VerificationError(
                        f"operator {op.name!r} of graph {graph.name!r} is in no program, but {target!r} lies at "
                        f"{addresses[target]}, and what it is a copy of at {wanted}; copy it, or place it there"
                    )
            elif target in addresses:
                owner, moving, start = addresses[target]
                addresses[source] = owner, moving, start - distance
            else:
                left.append((op, move))
        if len(left) == len(pending):
            break
        pending = left
    _check_kinds(graph, missing, addresses)
    for op in missing:
        _check_old_values(graph, op)


def _address(buffer: Buffer, buffers: Sequence[Buffer]) -> Address:
    place = buffer.place
    if place is None:
        return buffer.name, Place(0, 0), 0
    return buffers[place.base].name, replace(place, base=0, offset=0), place.offset


def _addresses(graph: RGraph, programs: Sequence[RProgram]) -> dict[str, Address]:
    found = {b.name: _address(b, graph.buffers) for b in graph.buffers if b.place is not None}
    for program in programs:
        for buffer in program.graph.buffers:
            here = _address(buffer, program.graph.buffers)
            if found.setdefault(buffer.name, here) != here:
                raise VerificationError(
                    f"program {program.name!r} has {buffer.name!r} at {here}, what comes before it at "
                    f"{found[buffer.name]}"
                )
    return found


def _check_old_values(graph: RGraph, op: ROperator) -> None:
    """Prove that in a step nobody reads the slot that a copy writes before it does: without it that comes earlier."""
    target = graph.buffers[op.outputs[0]].place
    if target is None or not target.phases:
        return
    for before in graph.operators[: graph.operators.index(op)]:
        for b in before.inputs:
            place = graph.buffers[b].place
            if place and place.base == target.base and (place.ahead - target.ahead) % target.phases == 0:
                raise VerificationError(
                    f"operator {op.name!r} of graph {graph.name!r} is in no program, and {before.name!r} reads what it "
                    "would overwrite; copy it"
                )


def _check_kinds(graph: RGraph, missing: Sequence[ROperator], addresses: dict[str, Address]) -> None:
    """Prove that what is left behind as an output of the graph has a tensor of its own."""
    for op in missing:
        for b in op.outputs:
            name, kind = graph.buffers[b].name, graph.buffers[b].kind
            if kind == "output" and addresses.get(name) != (name, Place(0, 0), 0):
                raise VerificationError(
                    f"operator {op.name!r} of graph {graph.name!r} is in no program, but its output {name!r} is to be "
                    "a tensor of its own; copy it"
                )
