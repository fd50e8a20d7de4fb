"""SelectvEU of Rammer's Algorithm 1 where the data of an operator's rTasks arrives at different times."""

import math
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from .arrival import Arrival


def select_veus_by_data(
    arrivals: Sequence[Arrival], ready_us: Sequence[float], rtask_us: float, signal_us: float
) -> dict[int, list[list[int]]]:
    """Choose for one rTask after another the vEU where it starts earliest: its data's vEU, or the first free one.

    Parameters
    ----------
    arrivals : sequence of Arrival
        When the data of each rTask arrives.
    ready_us : sequence of float
        When each vEU is free; infinite for one that may not be chosen.
    rtask_us : float
        Time of one rTask.
    signal_us : float
        From the end of an rTask until another vEU knows of it.

    Returns
    -------
    dict of int to list of list of int
        The rTasks of each vEU that gets any, in their order, as chunks: before each the vEU has to wait.
    """
    free = list(ready_us)
    heap = [(ready, veu) for veu, ready in enumerate(free)]
    heapify(heap)
    chosen: dict[int, list[list[int]]] = {}
    exchangeable: dict[float, dict[int, list[int]]] = {}
    for rtask in _by_start(arrivals, ready_us, rtask_us, signal_us):
        arrival = arrivals[rtask]
        while heap[0][0] != free[heap[0][1]]:
            heappop(heap)
        veu, data_veu = heap[0][1], arrival.data_veu
        start = arrival.start_us(veu, free[veu], signal_us)
        by_data_us = start if data_veu is None else arrival.start_us(data_veu, free[data_veu], signal_us)
        if data_veu is not None and by_data_us <= start:
            veu, start = data_veu, by_data_us
        else:
            exchangeable.setdefault(arrival.last_us, {}).setdefault(veu, []).append(rtask)
        if start > free[veu] or veu not in chosen:
            chosen.setdefault(veu, []).append([])
        chosen[veu][-1].append(rtask)
        free[veu] = start + rtask_us
        heappush(heap, (free[veu], veu))
    for simultaneous in exchangeable.values():
        _make_neighbours(simultaneous, chosen)
    return chosen


def _by_start(arrivals: Sequence[Arrival], ready_us: Sequence[float], rtask_us: float, signal_us: float) -> list[int]:
    """Order rTasks by when each would start on its data's vEU: so none takes that vEU from an earlier one."""
    free = list(ready_us)
    starts = []
    for rtask, arrival in sorted(enumerate(arrivals), key=lambda a: a[1].last_us):
        start = arrival.last_us + signal_us
        if (veu := arrival.data_veu) is not None and free[veu] < math.inf:
            start = arrival.start_us(veu, free[veu], signal_us)
            free[veu] = start + rtask_us
        starts.append((start, rtask))
    return [rtask for _, rtask in sorted(starts)]


def _make_neighbours(simultaneous: Mapping[int, Sequence[int]], chosen: Mapping[int, list[list[int]]]) -> None:
    """Exchange rTasks whose data arrives at the same time, so that each vEU gets neighbouring ones."""
    in_order = iter(sorted(rtask for rtasks in simultaneous.values() for rtask in rtasks))
    new = {old: next(in_order) for rtasks in simultaneous.values() for old in rtasks}
    for veu in simultaneous:
        for chunk in chosen[veu]:
            chunk[:] = [new.get(rtask, rtask) for rtask in chunk]
