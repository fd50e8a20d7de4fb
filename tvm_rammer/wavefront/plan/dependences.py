"""Which rTasks an rTask depends on: those whose output it reads, rather than all of their operator.

Rammer's barrier-rTask waits for a set of rTasks (OSDI 2020, 3.4). Here that set comes from the footprints of the
two kernels: two rTasks are independent if the boxes that they touch lie apart (`overlaps`).
"""

from collections.abc import Iterable, Sequence

from ...ir import ITEM_BYTES, Footprint, RGraph, RKernel, RProgram
from .overlaps import Needs, Shared, overlaps


def needs(graph: RGraph, writer: int, writes: RKernel, reader: int, reads: RKernel) -> Needs | None:
    """What each rTask of an operator needs of an operator before it.

    Parameters
    ----------
    graph : RGraph
    writer, reader : int
        The operators; the second reads what the first writes.
    writes, reads : RKernel
        Their kernels.

    Returns
    -------
    tuple of int or None
        None where every rTask needs all of them, or nothing better is known.
    """
    before, after = graph.operators[writer], graph.operators[reader]
    found: list[Needs] = []
    for i, b in enumerate(after.inputs):
        for n, written in enumerate(before.outputs):
            if graph.extent(b).overlaps(graph.extent(written)):
                out, into = _footprint(writes, len(before.inputs) + n), _footprint(reads, i)
                if out is None or into is None:
                    return None
                sets = overlaps(out, writes.num_rtasks, into, reads.num_rtasks, _shared(graph, written, b))
                if sets is None:
                    return None
                found.append(sets)
    if len(found) == 1:
        return found[0]
    return tuple(union(bits, range(len(bits))) for bits in zip(*found, strict=True))


def between(
    graph: RGraph,
    one: int,
    one_kernel: RKernel,
    parameter: int,
    other: int,
    other_kernel: RKernel,
    other_parameter: int,
) -> Needs | None:
    """For each rTask of the other operator those of the one that touch the same elements of a buffer.

    Parameters
    ----------
    graph : RGraph
    one, other : int
        The operators.
    one_kernel, other_kernel : RKernel
    parameter, other_parameter : int
        Which of its buffers, inputs first, lies where the other's does.

    Returns
    -------
    tuple of int or None
        As bits; None where every rTask touches what all of them do, or nothing better is known.
    """
    buffers = [
        (*graph.operators[o].inputs, *graph.operators[o].outputs)[p]
        for o, p in ((one, parameter), (other, other_parameter))
    ]
    out, into = _footprint(one_kernel, parameter), _footprint(other_kernel, other_parameter)
    if out is None or into is None:
        return None
    return overlaps(out, one_kernel.num_rtasks, into, other_kernel.num_rtasks, _shared(graph, *buffers, slot=True))


def union(sets: Sequence[int], indices: Iterable[int]) -> int:
    """The union of some of many sets, each as bits."""
    bits = 0
    for i in indices:
        bits |= sets[i]
    return bits


def count_unknown(program: RProgram) -> tuple[int, int]:
    """Count the dependences between operators of a program, and those for which footprints are missing.

    Returns
    -------
    unknown : int
        Dependences for which a kernel lacks the footprint: each rTask waits for all of the operator.
    total : int
    """
    graph, kernels = program.graph, program.kernels
    pairs = [
        (_footprint(kernels[reader], i), _footprint(kernels[writer], len(graph.operators[writer].inputs) + n))
        for reader, before in enumerate(graph.predecessors())
        for writer in before
        for i, b in enumerate(graph.operators[reader].inputs)
        for n, written in enumerate(graph.operators[writer].outputs)
        if graph.extent(b).overlaps(graph.extent(written))
    ]
    return sum(None in pair for pair in pairs), len(pairs)


def _footprint(kernel: RKernel, parameter: int) -> Footprint | None:
    return kernel.footprints[parameter] if parameter < len(kernel.footprints) else None


def _shared(graph: RGraph, written: int, read: int, *, slot: bool = False) -> Shared:
    """How they overlap in one step; or, for buffers that move, where both are in the same slot."""
    out, into = graph.buffers[written], graph.buffers[read]
    distance = graph.extent(written).start - graph.extent(read).start
    if slot and out.place and out.place.stride:
        distance = 0
    return Shared(out.shape, into.shape, distance // ITEM_BYTES[into.dtype])
