"""Where every buffer of an rProgram lies: segments, and byte offsets in them.

A segment is one tensor that the kernel gets as a parameter. There are four sorts: each input and each
output of the program is one; all constants are one, packed at compile time; the workspace is one, for
the intermediate buffers and the vEUs' scratch arenas. So a kernel has a handful of parameters, not thousands.
A view lies where its buffer lies, so many bytes further.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir import ALIGNMENT, RProgram, align
from ..kernel import Pack

KEPT, CONSTANTS, WORKSPACE, FIRST_EXTERNAL = -1, 0, 1, 2
"""Segments by their numbers. `KEPT` is no parameter: it is a vEU's own memory, where slices of constants stay."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a buffer starts: a segment, and a byte offset in it; for one that moves in slot 0 (`ir.Place`)."""

    segment: int
    offset: int
    stride: int = 0
    ahead: int = 0
    phases: int = 0
    from_end: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The memory of an rProgram.

    Parameters
    ----------
    addresses : tuple of tuple of Address
        For each operator the address of each of its buffers: inputs, then outputs.
    constants : numpy.ndarray
        All constants, as bytes (uint8, one axis).
    inputs, outputs : tuple of int
        `RGraph.buffers` positions of segments 2, 3, ...: the inputs, then the outputs.
    arena_offset, arena_bytes : int
        Byte offset in the workspace of the first vEU's scratch arena, and the size of one arena.
    workspace_bytes : int
        Size of the workspace, arenas included.
    first : tuple of tuple of Address
        As `addresses`, in step 0 of a program of several steps; empty for others.
    """

    addresses: tuple[tuple[Address, ...], ...]
    constants: np.ndarray
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena_offset: int
    arena_bytes: int
    workspace_bytes: int
    first: tuple[tuple[Address, ...], ...] = ()


def lay_out(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    packs: Sequence[Mapping[int, Pack]],
    *,
    arenas: int = 0,
    arena_bytes: int = 0,
) -> Layout:
    """Give every buffer of a program its address.

    Parameters
    ----------
    program : RProgram
    values : mapping of int to numpy.ndarray
        The value of each constant buffer.
    packs : sequence of mapping
        For each operator, how its kernel wants its constant parameters laid out.
    arenas, arena_bytes : int
        Number and size of the scratch arenas in the workspace.

    Returns
    -------
    Layout
    """
    graph = program.graph
    inputs = tuple(i for i, b in enumerate(graph.buffers) if b.kind == "input")
    outputs = tuple(i for i, b in enumerate(graph.buffers) if b.kind == "output")
    segment = {b: FIRST_EXTERNAL + i for i, b in enumerate((*inputs, *outputs))}
    packed: list[np.ndarray] = []
    packed_at: dict[tuple[int, Pack | None], Address] = {}
    end = 0

    def owner(buffer: int, pack: Pack | None) -> Address:
        nonlocal end
        if buffer in segment:
            return Address(segment[buffer], 0)
        if buffer in program.offsets:
            return Address(WORKSPACE, program.offsets[buffer])
        if (buffer, pack) not in packed_at:
            array = values[buffer] if pack is None else pack.apply(values[buffer])
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            packed_at[buffer, pack] = Address(CONSTANTS, end)
            packed.append(np.pad(data, (0, align(data.size) - data.size)))
            end += align(data.size)
        return packed_at[buffer, pack]

    def address(buffer: int, pack: Pack | None) -> Address:
        if (place := graph.buffers[buffer].place) is None:
            return owner(buffer, pack)
        base = owner(place.base, None)
        moves = place.stride, place.ahead, place.phases, place.from_end
        return Address(base.segment, base.offset + place.offset, *moves)

    def addresses_in(first: bool) -> tuple[tuple[Address, ...], ...]:
        return tuple(
            tuple(
                address(b, packs[o].get(i)) for i, b in enumerate((*((first and op.first) or op.inputs), *op.outputs))
            )
            for o, op in enumerate(graph.operators)
        )

    addresses, in_step_0 = addresses_in(first=False), addresses_in(first=True) if program.steps > 1 else ()
    constants = np.concatenate(packed) if packed else np.zeros(ALIGNMENT, np.uint8)
    arena_offset, arena_bytes = align(program.workspace_bytes), align(arena_bytes)
    workspace_bytes = max(ALIGNMENT, arena_offset + arenas * arena_bytes)
    return Layout(addresses, constants, inputs, outputs, arena_offset, arena_bytes, workspace_bytes, in_step_0)
