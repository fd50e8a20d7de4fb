"""What a plan would do, in time: a simulation of discrete events."""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from ..errors import ScheduleError
from ..ir import RProgram, Run, Signal, Wait
from .cost import CostModel


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
    """

    spans: tuple[Span, ...]
    makespan_us: float
    utilisation: float
    signals: Mapping[int, tuple[tuple[float, int], ...]]


def simulate(program: RProgram, cost: CostModel) -> Timeline:
    """Predict the times of everything that a program does.

    Parameters
    ----------
    program : RProgram
    cost : CostModel

    Returns
    -------
    Timeline

    Raises
    ------
    ScheduleError
        Some lanes wait for ever.
    """
    return _Simulation(program, cost).run()


class _Simulation:
    def __init__(self, program: RProgram, cost: CostModel) -> None:
        self.program, self.cost = program, cost
        self.spans: list[list[Span]] = [[] for _ in program.lanes]
        self.at = [0] * len(program.lanes)
        self.signals: dict[int, list[tuple[float, int]]] = {}
        self.waiting: dict[tuple[int, int], list[tuple[float, int]]] = {}
        # Lanes by the time of their next instruction, so that signals come in order of time.
        self.agenda = [(0.0, v) for v in range(len(program.lanes))]
        self.next_operators = [_next_operators(program, v) for v in range(len(program.lanes))]

    def run(self) -> Timeline:
        while self.agenda:
            self._advance(*heappop(self.agenda))
        if stuck := [v for v, at in enumerate(self.at) if at < len(self.program.lanes[v])]:
            raise ScheduleError(f"program {self.program.name!r}: lanes {stuck[:8]} wait for ever")
        spans = tuple(span for lane in self.spans for span in lane)
        makespan = max((lane[-1].end_us for lane in self.spans if lane), default=0.0)
        busy = sum(s.end_us - s.start_us for s in spans if s.kind == "run")
        signals = {event: tuple(given) for event, given in sorted(self.signals.items())}
        return Timeline(spans, makespan, busy / (makespan * len(self.at)) if makespan else 0.0, signals)

    def _advance(self, now: float, v: int) -> None:
        lane = self.program.lanes[v]
        while self.at[v] < len(lane):
            instruction = lane[self.at[v]]
            if isinstance(instruction, Signal):
                self._signal(instruction.event, now, v)
                self.at[v] += 1
                continue
            if isinstance(instruction, Run):
                end = now + self.cost.run_us(self.program.kernels[instruction.operator], instruction)
            else:
                given = self.signals.get(instruction.event, [])
                if len(given) < instruction.arrivals:
                    self.waiting.setdefault((instruction.event, instruction.arrivals), []).append((now, v))
                    return
                end = self._passed(instruction, now)
            self._finish(v, now, end)
            if self.agenda and self.agenda[0][0] < end:
                heappush(self.agenda, (end, v))
                return
            now = end

    def _finish(self, v: int, start: float, end: float) -> None:
        n = self.at[v]
        kind: Literal["run", "wait"] = "run" if isinstance(self.program.lanes[v][n], Run) else "wait"
        self.spans[v].append(Span(v, n, self.next_operators[v][n], start, end, kind))
        self.at[v] += 1

    def _signal(self, event: int, now: float, v: int) -> None:
        given = self.signals.setdefault(event, [])
        given.append((now, v))
        for start, u in self.waiting.pop((event, len(given)), []):
            end = self._passed(Wait(event, len(given)), start)
            self._finish(u, start, end)
            heappush(self.agenda, (end, u))

    def _passed(self, wait: Wait, start: float) -> float:
        last = self.signals[wait.event][wait.arrivals - 1][0] if wait.arrivals > 0 else start - self.cost.signal_us
        return self.cost.passed_us(start, last)


def _next_operators(program: RProgram, v: int) -> list[int]:
    """For each instruction of a lane the operator of the next `Run` from there on, or -1."""
    operators, operator = [], -1
    for instruction in reversed(program.lanes[v]):
        operator = instruction.operator if isinstance(instruction, Run) else operator
        operators.append(operator)
    return operators[::-1]
