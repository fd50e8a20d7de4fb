"""Bandwidth that running rTasks share: how much they demand, and how far that slows them down."""

from heapq import heappop, heappush

from ...ir import RGraph, RKernel, RProgram
from ..cost import CostModel
from ..units import GBPS


def rtask_bytes(graph: RGraph, operator: int, kernel: RKernel) -> float:
    """Bytes that one rTask of an operator moves from or to beyond its unit.

    Parameters
    ----------
    graph : RGraph
    operator : int
    kernel : RKernel

    Returns
    -------
    float
        What the kernel says. Else the boxes that it touches of each buffer; an even part of the buffer where they
        are unknown, which is too little where rTasks read the same bytes.
    """
    if kernel.bytes_per_rtask:
        return kernel.bytes_per_rtask
    op = graph.operators[operator]
    buffers = [graph.buffers[b] for b in (*op.inputs, *op.outputs)]
    footprints = kernel.footprints or (None,) * len(buffers)
    total = 0.0
    for buffer, footprint in zip(buffers, footprints, strict=True):
        if footprint is None or len(footprint.extents) != len(buffer.shape):
            total += buffer.nbytes / kernel.num_rtasks
            continue
        part = float(buffer.nbytes)
        for extent, size in zip(footprint.extents, buffer.shape, strict=True):
            part *= min(1.0, extent / max(1, size))
        total += part
    return total


def demands(program: RProgram, cost: CostModel) -> list[float]:
    """For each operator the part of the shared bandwidth that one of its running rTasks demands.

    Returns
    -------
    list of float
        Empty where sharing is switched off, or where all lanes together can never demand more than there is.
    """
    if cost.shared_gbps is None:
        return []
    parts = []
    for operator, kernel in enumerate(program.kernels):
        alone_us = cost.rtask_us(kernel)
        nbytes = rtask_bytes(program.graph, operator, kernel)
        parts.append(nbytes / alone_us / (cost.shared_gbps * GBPS) if alone_us else 0.0)
    return parts if max(parts, default=0.0) * len(program.lanes) > 1.0 else []


class SharedRuns:
    """Runs that slow each other down, in a heap by their end in virtual time.

    Virtual time runs slower by the factor by which demand exceeds the bandwidth. All runs that move bytes are slowed
    by the same factor, so that their order stays when others begin or end, and each of that is one heap operation.
    """

    def __init__(self) -> None:
        self._now_us = 0.0
        self._virtual_us = 0.0
        self._demand = 0.0
        self._ends: list[tuple[float, int, float]] = []

    def next_end_us(self) -> float:
        """When the first of them ends if no other begins before; infinite if there is none."""
        if not self._ends:
            return float("inf")
        return self._now_us + (self._ends[0][0] - self._virtual_us) * max(1.0, self._demand)

    def begin(self, now_us: float, lane: int, alone_us: float, demand: float) -> None:
        """Begin a `Run` of a lane that takes `alone_us` without contention."""
        self._virtual_us += (now_us - self._now_us) / max(1.0, self._demand)
        self._now_us = now_us
        self._demand += demand
        heappush(self._ends, (self._virtual_us + alone_us, lane, demand))

    def end(self) -> tuple[float, int]:
        """Remove the first that ends; return when, and its lane."""
        now_us = self.next_end_us()
        self._virtual_us, lane, demand = heappop(self._ends)
        # Rounding errors of the sum must not slow later runs.
        self._demand = self._demand - demand if self._ends else 0.0
        self._now_us = now_us
        return now_us, lane
