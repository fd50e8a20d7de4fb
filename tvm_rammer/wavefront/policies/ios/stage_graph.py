"""All ways to cut a block into stages: the states of IOS's dynamic program, and the endings between them."""

from collections.abc import Callable, Sequence
from heapq import nsmallest

from .endings import endings

_NEVER_US = float("inf")
"""Time of a stage that must not be used."""


class StageGraph:
    """A graph whose paths are lists of stages, and the shortest ones those of least time.

    A stage's time is expensive to compute, a lower bound of it cheap. So the shortest path is computed with bounds,
    the stages on it are timed, and so on until the shortest path has only timed stages. Then no other path is
    shorter.

    Parameters
    ----------
    successors : sequence of int
        For each operator the operators that depend on it, as bits; all of larger number.
    r, s : int
        At most so many operators a group, and groups a stage.
    bound_us : callable
        What a stage, as bits, takes at least.
    """

    def __init__(self, successors: Sequence[int], r: int, s: int, bound_us: Callable[[int], float]) -> None:
        self._everything = (1 << len(successors)) - 1
        self._endings: dict[int, list[int]] = {}
        todo = [self._everything]
        while todo:
            state = todo.pop()
            if state and state not in self._endings:
                self._endings[state] = list(endings(state, successors, r, s))
                todo += [state & ~ending for ending in self._endings[state]]
        self._endings = dict(sorted(self._endings.items(), key=lambda item: item[0].bit_count()))
        self._expected_us = {e: bound_us(e) for e in dict.fromkeys(e for es in self._endings.values() for e in es)}
        self._timed_us: dict[int, float] = {}

    def time_stages(self, time_us: Callable[[int], float], enough: Callable[[], bool]) -> None:
        """Time stages until the shortest path is known; after enough of them, consider only those already timed.

        Parameters
        ----------
        time_us : callable
            The time of a stage, as bits.
        enough : callable
            Called after each path.
        """
        while untimed := [e for e in self._shortest() if e not in self._timed_us]:
            for ending in untimed:
                self._timed_us[ending] = self._expected_us[ending] = time_us(ending)
            if enough():
                self._expected_us = {e: self._timed_us.get(e, _NEVER_US) for e in self._expected_us}

    def _shortest(self) -> list[int]:
        """dp[S] = min over endings S' of dp[S - S'] + latency(S')."""
        best: dict[int, tuple[float, int]] = {0: (0.0, 0)}
        for state, ends in self._endings.items():
            best[state] = min((best[state & ~e][0] + self._expected_us[e], e) for e in ends)
        path, state = [], self._everything
        while state:
            path.append(best[state][1])
            state &= ~path[-1]
        return path

    def best(self, limit: int) -> list[tuple[int, ...]]:
        """List up to `limit` of the shortest paths, the shortest first. Stages not timed count with their bound."""
        found: dict[int, list[tuple[float, tuple[int, ...]]]] = {0: [(0.0, ())]}
        for state, ends in self._endings.items():
            longer = ((us + self._expected_us[e], (*stages, e)) for e in ends for us, stages in found[state & ~e])
            found[state] = nsmallest(limit, longer)
        return [stages for us, stages in found[self._everything] if us < _NEVER_US]
