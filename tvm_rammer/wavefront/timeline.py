"""A simulated execution, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Span:
    """What one vEU does for some time.

    Parameters
    ----------
    lane : int
    instruction : int
        Position in the lane of the `Run` or `Wait`.
    operator : int
        Whose rTasks run, or wait; -1 for a wait that no rTask follows.
    start_us, end_us : float
        In microseconds from the start of the program, its launch not counted.
    kind : {"run", "wait"}
    """

    lane: int
    instruction: int
    operator: int
    start_us: float
    end_us: float
    kind: Literal["run", "wait"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A simulated execution of a program.

    Parameters
    ----------
    spans : tuple of Span
        Lane after lane, in order of time. Signals take no time of their own.
    makespan_us : float
        End of the last span, the launch not counted.
    utilisation : float
        Part of vEUs x makespan in which rTasks run, from 0 to 1.
    signals : mapping of int to tuple of (float, int)
        For each event its signals as (time, lane), in order of time.
    wait_us : tuple of float
        For each lane the time that it spends in waits.
    """

    spans: tuple[Span, ...]
    makespan_us: float
    utilisation: float
    signals: Mapping[int, tuple[tuple[float, int], ...]]
    wait_us: tuple[float, ...]

    def by_lane(self) -> list[list[Span]]:
        """The spans of each lane, in order of time."""
        lanes: list[list[Span]] = [[] for _ in self.wait_us]
        for span in self.spans:
            lanes[span.lane].append(span)
        return lanes
