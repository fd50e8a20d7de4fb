"""Where intermediate buffers lie in the workspace: memory of the dead is given to the living."""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Lane, RGraph, align
from .clocks import Clock, Clocks
from .order import operator_order


@dataclass(frozen=True, slots=True, order=True)
class _Tenant:
    """A buffer in its place, and how far each lane is once all that touches it has ended."""

    offset: int
    end: int
    free: Clock


def plan_memory(graph: RGraph, lanes: Sequence[Lane], num_events: int) -> tuple[dict[int, int], int]:
    """Give each intermediate buffer its offset.

    A buffer takes memory of another only if all rTasks that touch the other are done before its writer
    begins, by the order that the lanes have anyway: no wait is added for memory.

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
    clocks = Clocks.of(len(lanes))
    free = [0] * len(graph.buffers)
    for op, end in zip(graph.operators, order.end, strict=True):
        for b in (*op.inputs, *op.outputs):
            free[b] = clocks.merge(free[b], end)
    offsets: dict[int, int] = {}
    tenants: list[_Tenant] = []
    top = 0
    for o in order.sequence:
        mine = [b for b in graph.operators[o].outputs if graph.buffers[b].kind == "intermediate"]
        for b in sorted(mine, key=lambda b: -graph.buffers[b].nbytes):
            size = align(graph.buffers[b].nbytes)
            offset = _best_fit([t for t in tenants if not clocks.covers(order.begin[o], t.free)], size, top)
            new = _Tenant(offset, offset + size, free[b])
            tenants = _move_in(tenants, new)
            top = max(top, new.end)
            offsets[b] = offset
    return {b: offsets[b] for b in sorted(offsets)}, top


def _best_fit(alive: Sequence[_Tenant], size: int, top: int) -> int:
    """The smallest gap between tenants that may be alive; the end of the last one if there is none."""
    best, best_gap, free_from = -1, 0, 0
    for tenant in alive:
        gap = tenant.offset - free_from
        if gap >= size and (best < 0 or gap < best_gap):
            best, best_gap = free_from, gap
        free_from = max(free_from, tenant.end)
    if top - free_from >= size and (best < 0 or top - free_from < best_gap):
        return free_from
    return best if best >= 0 else free_from


def _move_in(tenants: Sequence[_Tenant], new: _Tenant) -> list[_Tenant]:
    """Add a tenant and forget those whose place it takes wholly: who comes after it comes after them too."""
    kept = [t for t in tenants if not (new.offset <= t.offset and t.end <= new.end)]
    insort(kept, new)
    return kept
