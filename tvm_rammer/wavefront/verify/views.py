"""Operators that are in no program: each byte that one would copy lies already where it is to be."""

from collections.abc import Sequence

from ...errors import VerificationError
from ...ir import Copies, RGraph, ROperator, RProgram

Address = tuple[str, int]
"""The name of a buffer that owns memory, and a byte in it."""


def check_views(graph: RGraph, missing: Sequence[ROperator], programs: Sequence[RProgram], copies: Copies) -> None:
    """Prove that operators which only copy have nothing to do.

    Parameters
    ----------
    graph : RGraph
        Without views.
    missing : sequence of ROperator
        Operators of the graph, in its order, that are in no program; the function of each is in `copies`.
    programs : sequence of RProgram
    copies : Copies

    Raises
    ------
    VerificationError
        A buffer lies in different places in two programs, or a byte elsewhere than where it would be copied to.
    """
    addresses = _addresses(programs)
    pending = [(op, move) for op in missing for move in copies[op.function]]
    # What no program touches lies where its neighbours demand it; a pass that learns nothing more is the last.
    while pending:
        left = []
        for op, move in pending:
            source, target = graph.buffers[op.inputs[move.source]].name, graph.buffers[op.outputs[move.target]].name
            distance = move.source_start - move.target_start
            if source in addresses:
                owner, start = addresses[source]
                if addresses.setdefault(target, (owner, start + distance)) != (owner, start + distance):
                    raise VerificationError(
                        f"operator {op.name!r} of graph {graph.name!r} is in no program, but {target!r} lies at "
                        f"{addresses[target]}, and what it is a copy of at {(owner, start + distance)}; copy it, or "
                        "place it there"
                    )
            elif target in addresses:
                owner, start = addresses[target]
                addresses[source] = owner, start - distance
            else:
                left.append((op, move))
        if len(left) == len(pending):
            break
        pending = left
    _check_kinds(graph, missing, addresses)


def _addresses(programs: Sequence[RProgram]) -> dict[str, Address]:
    found: dict[str, Address] = {}
    for program in programs:
        buffers = program.graph.buffers
        for buffer in buffers:
            place = buffer.place
            here = (buffer.name, 0) if place is None else (buffers[place.base].name, place.offset)
            if found.setdefault(buffer.name, here) != here:
                raise VerificationError(
                    f"program {program.name!r} has {buffer.name!r} at {here}, one before it at {found[buffer.name]}"
                )
    return found


def _check_kinds(graph: RGraph, missing: Sequence[ROperator], addresses: dict[str, Address]) -> None:
    """Prove that what is left behind as an output of the graph has a tensor of its own."""
    for op in missing:
        for b in op.outputs:
            name, kind = graph.buffers[b].name, graph.buffers[b].kind
            if kind == "output" and addresses.get(name) != (name, 0):
                raise VerificationError(
                    f"operator {op.name!r} of graph {graph.name!r} is in no program, but its output {name!r} is to be "
                    "a tensor of its own; copy it"
                )
