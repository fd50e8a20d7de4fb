"""SelectvEU of Rammer's Algorithm 1: each rTask goes where it can start earliest."""

from collections.abc import Sequence
from heapq import heapify, heapreplace


def select_veus(starts_us: Sequence[float], rtask_us: float, num_rtasks: int) -> list[int]:
    """Count how many equal rTasks each vEU gets when one after another goes where it starts earliest.

    Parameters
    ----------
    starts_us : sequence of float
        When each vEU could start the first of them.
    rtask_us : float
        Time of one rTask.
    num_rtasks : int

    Returns
    -------
    list of int
        A count for each vEU. Between vEUs that are equally early the emptier, then the first, is taken.
    """
    counts = [0] * len(starts_us)
    heap = [(start, 0, veu) for veu, start in enumerate(starts_us)]
    heapify(heap)
    for _ in range(num_rtasks):
        start, count, veu = heap[0]
        counts[veu] = count + 1
        heapreplace(heap, (start + rtask_us, count + 1, veu))
    return counts
