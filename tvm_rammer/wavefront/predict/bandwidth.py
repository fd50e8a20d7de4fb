"""Bandwidth that running rTasks share: how much they ask for, and how long they then take."""

from heapq import heappop, heappush

from ...ir import RGraph, RKernel, RProgram
from ..cost import CostModel

_BYTES_PER_US = 1e3
"""One GB/s in bytes a microsecond."""


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
    """For each operator what one of its running rTasks asks of the shared bandwidth, in parts of it.

    Returns
    -------
    list of float
        Empty where sharing is switched off, or where all lanes together can never ask for more than there is.
    """
    if cost.shared_gbps is None:
        return []
    parts = []
    for operator, kernel in enumerate(program.kernels):
        alone_us = cost.rtask_us(kernel)
        nbytes = rtask_bytes(program.graph, operator, kernel)
        parts.append(nbytes / alone_us / (cost.shared_gbps * _BYTES_PER_US) if alone_us else 0.0)
    return parts if max(parts, default=0.0) * len(program.lanes) > 1.0 else []


class SharedRuns:
    """Runs that stretch each other, kept by the end they would have in a time that slows down with them.

    All that move bytes are slowed by the same factor. So their order does not change when others come or go, and
    each coming and going costs a step in a heap, however many run.
    """

    def __init__(self) -> None:
        self._now_us = 0.0
        self._slowed_us = 0.0
        self._demand = 0.0
        self._ends: list[tuple[float, int, float]] = []

    def next_end_us(self) -> float:
        """When the first of them ends if none comes before; infinite if there is none."""
        if not self._ends:
            return float("inf")
        return self._now_us + (self._ends[0][0] - self._slowed_us) * max(1.0, self._demand)

    def begin(self, now_us: float, lane: int, alone_us: float, demand: float) -> None:
        """A lane begins a `Run` that takes `alone_us` undisturbed."""
        self._slowed_us += (now_us - self._now_us) / max(1.0, self._demand)
        self._now_us = now_us
        self._demand += demand
        heappush(self._ends, (self._slowed_us + alone_us, lane, demand))

    def end(self) -> tuple[float, int]:
        """Take the first that ends: when, and its lane."""
        now_us = self.next_end_us()
        self._slowed_us, lane, demand = heappop(self._ends)
        # What rounding leaves of the sum must not slow those that come later.
        self._demand = self._demand - demand if self._ends else 0.0
        self._now_us = now_us
        return now_us, lane
