"""An execution of a program, simulated or measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...ir import Instruction, Run


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which one vEU runs rTasks, or waits.

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
    """An execution of a program, simulated or measured.

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

    @classmethod
    def of(cls, lanes: Sequence[Sequence[Span]], signals: Mapping[int, Sequence[tuple[float, int]]]) -> "Timeline":
        """Make a timeline of the spans of each lane and the signals of each event, both in order of time."""
        spans = tuple(span for lane in lanes for span in lane)
        makespan_us = max((span.end_us for span in spans), default=0.0)
        busy_us = sum(s.end_us - s.start_us for s in spans if s.kind == "run")
        utilisation = busy_us / (makespan_us * len(lanes)) if makespan_us else 0.0
        wait_us = tuple(sum(s.end_us - s.start_us for s in lane if s.kind == "wait") for lane in lanes)
        by_event = {event: tuple(given) for event, given in sorted(signals.items())}
        return cls(spans, makespan_us, utilisation, by_event, wait_us)

    def by_lane(self) -> list[list[Span]]:
        """The spans of each lane, in order of time."""
        lanes: list[list[Span]] = [[] for _ in self.wait_us]
        for span in self.spans:
            lanes[span.lane].append(span)
        return lanes


def next_operators(lane: Sequence[Instruction]) -> list[int]:
    """For each instruction of a lane the operator of the next `Run` from there on, or -1."""
    operators, operator = [], -1
    for instruction in reversed(lane):
        operator = instruction.operator if isinstance(instruction, Run) else operator
        operators.append(operator)
    return operators[::-1]
