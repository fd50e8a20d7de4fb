"""Where every buffer of an rProgram lies: segments, and byte offsets in them.

A segment is one tensor that the kernel gets as a parameter. There are four sorts: each input and each
output of the program is one; all constants are one, packed at compile time; the workspace is one, for
the intermediate buffers and the vEUs' scratch. So a kernel has a handful of parameters, not thousands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir import ALIGNMENT, RGraph, RProgram, align
from ..kernel import Pack

CONSTANTS, WORKSPACE, FIRST_EXTERNAL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Place:
    """A segment, and the byte in it at which a buffer starts."""

    segment: int
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The memory of an rProgram.

    Parameters
    ----------
    places : tuple of tuple of Place
        For each operator, where each of its buffers lies: inputs, then outputs.
    constants : numpy.ndarray
        All constants, as bytes (uint8, one axis).
    external : tuple of int
        `RGraph.buffers` positions of segments 2, 3, ...: the inputs, then the outputs.
    num_inputs : int
        How many of `external` are inputs.
    scratch_offset, scratch_bytes : int
        Byte offset in the workspace of the first vEU's scratch arena, and the size of one arena.
    workspace_bytes : int
        Size of the whole workspace.
    """

    places: tuple[tuple[Place, ...], ...]
    constants: np.ndarray
    external: tuple[int, ...]
    num_inputs: int
    scratch_offset: int
    scratch_bytes: int
    workspace_bytes: int


def external_buffers(graph: RGraph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the inputs and the outputs of a graph, as positions in `graph.buffers`."""
    inputs = tuple(i for i, b in enumerate(graph.buffers) if b.kind == "input")
    outputs = tuple(i for i, b in enumerate(graph.buffers) if b.kind == "output")
    return inputs, outputs


def lay_out(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    packs: Sequence[Mapping[int, Pack]],
    *,
    arenas: int = 0,
    arena_bytes: int = 0,
) -> Layout:
    """Place every buffer of a program.

    Parameters
    ----------
    program : RProgram
    values : mapping of int to numpy.ndarray
        The value of each constant buffer.
    packs : sequence of mapping
        For each operator, how its kernel wants its constant parameters laid out.
    arenas, arena_bytes : int
        Number and size of the scratch arenas kept in the workspace.
    """
    graph = program.graph
    inputs, outputs = external_buffers(graph)
    segment = {b: FIRST_EXTERNAL + i for i, b in enumerate((*inputs, *outputs))}
    blob: list[np.ndarray] = []
    packed: dict[tuple[int, Pack | None], Place] = {}
    end = 0

    def place(buffer: int, pack: Pack | None) -> Place:
        nonlocal end
        if buffer in segment:
            return Place(segment[buffer], 0)
        if buffer in program.offsets:
            return Place(WORKSPACE, program.offsets[buffer])
        if (buffer, pack) not in packed:
            array = values[buffer] if pack is None else pack.apply(values[buffer])
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            packed[buffer, pack] = Place(CONSTANTS, end)
            blob.append(np.pad(data, (0, align(data.size) - data.size)))
            end += align(data.size)
        return packed[buffer, pack]

    places = tuple(
        tuple(place(b, packs[o].get(i)) for i, b in enumerate((*op.inputs, *op.outputs)))
        for o, op in enumerate(graph.operators)
    )
    constants = np.concatenate(blob) if blob else np.zeros(ALIGNMENT, np.uint8)
    scratch_offset, arena_bytes = align(program.workspace_bytes), align(arena_bytes)
    total = max(ALIGNMENT, scratch_offset + arenas * arena_bytes)
    return Layout(places, constants, (*inputs, *outputs), len(inputs), scratch_offset, arena_bytes, total)
