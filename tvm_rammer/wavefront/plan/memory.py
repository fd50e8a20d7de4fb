"""Offsets of intermediate buffers in the workspace: a buffer may take the memory of one that is dead by then.

A buffer lives as long as any view of it: from the first rTask that writes a part of it to the last one that reads one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Lane, RGraph, align
from .clocks import Clock, ClockArithmetic
from .order import operator_order


@dataclass(frozen=True, slots=True, order=True)
class _Allocation:
    """The memory of a buffer, and how far the lanes are once every rTask that reads or writes it has ended."""

    offset: int
    end: int
    dead: Clock


def plan_memory(graph: RGraph, lanes: Sequence[Lane], num_events: int) -> tuple[dict[int, int], int]:
    """Give each intermediate buffer its offset, by best fit.

    A buffer takes memory of another only if all rTasks that read or write the other have ended before any of its
    writers begins, by the order that the lanes have anyway: no wait is added for memory.

    Parameters
    ----------
    graph : RGraph
    lanes : sequence of Lane
        The finished plan of the graph.
    num_events : int

    Returns
    -------
    offsets : dict of int to int
        Byte offset of each intermediate buffer, a multiple of `ir.ALIGNMENT`.
    workspace_bytes : int
    """
    order = operator_order(lanes, len(graph.operators), num_events)
    arithmetic = ClockArithmetic.of(len(lanes))
    dead = [0] * len(graph.buffers)
    born: dict[int, Clock] = {}
    for op, begin, end in zip(graph.operators, order.begin, order.end, strict=True):
        for b in {graph.extent(b).base for b in (*op.inputs, *op.outputs)}:
            dead[b] = arithmetic.merge(dead[b], end)
        for b in {graph.extent(b).base for b in op.outputs}:
            born[b] = arithmetic.common(born.get(b, begin), begin)
    offsets: dict[int, int] = {}
    allocations: list[_Allocation] = []
    top, first_dead = 0, 0
    for o in order.sequence:
        written = dict.fromkeys(graph.extent(b).base for b in graph.operators[o].outputs)
        new = [b for b in written if graph.buffers[b].kind == "intermediate" and b not in offsets]
        for b in sorted(new, key=lambda b: -graph.buffers[b].nbytes):
            size = align(graph.buffers[b].nbytes)
            if arithmetic.covers(born[b], first_dead):
                alive = [a for a in allocations if not arithmetic.covers(born[b], a.dead)]
                offset = _best_fit(alive, size, top)
            else:  # none is dead, and together they are all memory that there is
                offset = top
            allocation = _Allocation(offset, offset + size, dead[b])
            first_dead = arithmetic.common(first_dead, dead[b]) if allocations else dead[b]
            _allocate(allocations, allocation)
            top = max(top, allocation.end)
            offsets[b] = offset
    return {b: offsets[b] for b in sorted(offsets)}, top


def _best_fit(alive: Sequence[_Allocation], size: int, top: int) -> int:
    """The smallest gap between buffers that may be alive; the end of the last one if there is none."""
    best, best_gap, free_from = -1, 0, 0
    for allocation in alive:
        gap = allocation.offset - free_from
        if gap >= size and (best < 0 or gap < best_gap):
            best, best_gap = free_from, gap
        free_from = max(free_from, allocation.end)
    if top - free_from >= size and (best < 0 or top - free_from < best_gap):
        return free_from
    return best if best >= 0 else free_from


def _allocate(allocations: list[_Allocation], new: _Allocation) -> None:
    """Add an allocation and forget those that it covers: what comes after it comes after them, too."""
    first = bisect_left(allocations, new.offset, key=lambda a: a.offset)
    last = bisect_right(allocations, new.end, key=lambda a: a.offset)
    allocations[first:last] = sorted([new, *(a for a in allocations[first:last] if a.end > new.end)])
