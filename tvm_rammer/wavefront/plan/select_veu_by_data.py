"""SelectvEU of Rammer's Algorithm 1 where rTasks of one operator are ready at different times and places."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from .arrival import Arrival


def select_homes(
    arrivals: Sequence[Arrival], ready_us: Sequence[float], rtask_us: float, signal_us: float
) -> dict[int, list[list[int]]]:
    """Choose for one rTask after another the vEU where it starts earliest: its home, or the one that is free first.

    Parameters
    ----------
    arrivals : sequence of Arrival
        When what each rTask reads is there.
    ready_us : sequence of float
        When each vEU is free.
    rtask_us : float
        Time of one rTask.
    signal_us : float
        From the end of an rTask to another vEU that goes on.

    Returns
    -------
    dict of int to list of list of int
        The rTasks of each vEU that gets any, in their order, as chunks: before each the vEU has to wait.
    """
    free = list(ready_us)
    heap = [(ready, veu) for veu, ready in enumerate(free)]
    heapify(heap)
    chosen: dict[int, list[list[int]]] = {}
    others: dict[float, dict[int, list[int]]] = {}
    for rtask in _by_start(arrivals, ready_us, rtask_us, signal_us):
        arrival = arrivals[rtask]
        while heap[0][0] != free[heap[0][1]]:
            heappop(heap)
        veu, home = heap[0][1], arrival.home
        start = arrival.start_us(veu, free[veu], signal_us)
        at_home_us = start if home is None else arrival.start_us(home, free[home], signal_us)
        if home is not None and at_home_us <= start:
            veu, start = home, at_home_us
        else:
            others.setdefault(arrival.at_us, {}).setdefault(veu, []).append(rtask)
        if start > free[veu] or veu not in chosen:
            chosen.setdefault(veu, []).append([])
        chosen[veu][-1].append(rtask)
        free[veu] = start + rtask_us
        heappush(heap, (free[veu], veu))
    for alike in others.values():
        _make_neighbours(alike, chosen)
    return chosen


def _by_start(arrivals: Sequence[Arrival], ready_us: Sequence[float], rtask_us: float, signal_us: float) -> list[int]:
    """RTasks by the time when each would start if all that have a home stayed there: nobody is crowded out early."""
    free = list(ready_us)
    starts = []
    for rtask, arrival in sorted(enumerate(arrivals), key=lambda a: a[1].at_us):
        start = arrival.at_us + signal_us
        if (home := arrival.home) is not None:
            start = arrival.start_us(home, free[home], signal_us)
            free[home] = start + rtask_us
        starts.append((start, rtask))
    return [rtask for _, rtask in sorted(starts)]


def _make_neighbours(alike: Mapping[int, Sequence[int]], chosen: Mapping[int, list[list[int]]]) -> None:
    """Exchange rTasks that are ready at the same time, so that each vEU has neighbours of them."""
    inorder = iter(sorted(rtask for rtasks in alike.values() for rtask in rtasks))
    new = {old: next(inorder) for rtasks in alike.values() for old in rtasks}
    for veu in alike:
        for chunk in chosen[veu]:
            chunk[:] = [new.get(rtask, rtask) for rtask in chunk]
