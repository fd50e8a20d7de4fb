"""Checks of results: against a reference in float64, and bit by bit between runs."""

from array import array
from collections.abc import Callable, Sequence
from math import inf, isfinite


def finite_relative_error(got: Sequence[float], want: Sequence[float]) -> float:
    """Largest difference over the largest magnitude of the reference; infinite if a result is not finite.

    On finite values the same figure as `benchmark.race.relative_error`, without NumPy.
    """
    if len(got) != len(want) or not all(map(isfinite, got)):
        return inf
    largest = max(map(abs, want), default=0.0)
    return max((abs(a - b) for a, b in zip(got, want, strict=True)), default=0.0) / max(largest, 1e-30)


def count_different(run: Callable[[], list["array[float]"]], first: list["array[float]"], times: int) -> int:
    """Run several times; count the runs whose results differ from the first in any bit.

    Plans are static and no kernel adds atomically, so a difference means a race.
    """
    return sum([o.tobytes() for o in run()] != [o.tobytes() for o in first] for _ in range(times))
