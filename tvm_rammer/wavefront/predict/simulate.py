"""A discrete-event simulation of a plan."""

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Literal

from ...errors import ScheduleError
from ...ir import RProgram, Run, Signal, Wait, unroll
from ..cost import CostModel
from .bandwidth import SharedRuns, demands
from .reuse import refill_us
from .timeline import Span, Timeline, next_operators


def simulate(program: RProgram, cost: CostModel) -> Timeline:
    """Predict when each instruction of a program begins and ends.

    Parameters
    ----------
    program : RProgram
    cost : CostModel

    Returns
    -------
    Timeline
        Of a program of several steps that of the unrolled one.

    Raises
    ------
    ScheduleError
        A deadlock.
    """
    program = unroll(program)
    if cost.caches is None:
        return _Simulation(program, cost, {}).run()
    warm = _Simulation(program, cost, {}).run()
    runs = sorted((span.start_us, span.lane, span.instruction) for span in warm.spans if span.kind == "run")
    refill = refill_us(program, cost.caches, ((lane, instruction) for _, lane, instruction in runs))
    return _Simulation(program, cost, refill).run()


class _Simulation:
    def __init__(self, program: RProgram, cost: CostModel, refill_us: Mapping[tuple[int, int], float]) -> None:
        self.program, self.cost = program, cost
        self.spans: list[list[Span]] = [[] for _ in program.lanes]
        self.at = [0] * len(program.lanes)
        self.signals: dict[int, list[tuple[float, int]]] = {}
        self.waiting: dict[tuple[int, int], list[tuple[float, int]]] = {}
        # Lanes by the time of their next instruction, so that signals are given in order of time.
        self.agenda = [(0.0, v) for v in range(len(program.lanes))]
        self.next_operators = [next_operators(lane) for lane in program.lanes]
        self.demands = demands(program, cost)
        self.refill_us = refill_us
        self.shared = SharedRuns()
        self.started_us = [0.0] * len(program.lanes)

    def run(self) -> Timeline:
        while True:
            shared_us = self.shared.next_end_us()
            if self.agenda and self.agenda[0][0] <= shared_us:
                self._advance(*heappop(self.agenda))
            elif shared_us < float("inf"):
                now, v = self.shared.end()
                self._finish(v, self.started_us[v], now)
                self._advance(now, v)
            else:
                break
        if stuck := [v for v, at in enumerate(self.at) if at < len(self.program.lanes[v])]:
            raise ScheduleError(f"program {self.program.name!r}: lanes {stuck[:8]} wait for ever")
        return Timeline.of(self.spans, self.signals)

    def _advance(self, now: float, v: int) -> None:
        lane = self.program.lanes[v]
        while self.at[v] < len(lane):
            instruction = lane[self.at[v]]
            if isinstance(instruction, Signal):
                self._signal(instruction.event, now, v)
                self.at[v] += 1
                continue
            if isinstance(instruction, Run):
                alone = self._alone_us(instruction, v)
                if self.demands and self.demands[instruction.operator]:
                    self.started_us[v] = now
                    self.shared.begin(now, v, alone, self.demands[instruction.operator])
                    return
                end = now + alone
            else:
                given = self.signals.get(instruction.event, ())
                if len(given) < instruction.arrivals:
                    self.waiting.setdefault((instruction.event, instruction.arrivals), []).append((now, v))
                    return
                end = self._wait_end(instruction, now, v)
            self._finish(v, now, end)
            if self.demands or (self.agenda and self.agenda[0][0] < end):
                heappush(self.agenda, (end, v))
                return
            now = end

    def _alone_us(self, run: Run, v: int) -> float:
        """Time of a `Run` without contention, its weights read from where they are."""
        kernel = self.program.kernels[run.operator]
        refill_us = self.refill_us.get((v, self.at[v]), 0.0)
        return self.cost.run_us(kernel, run) + refill_us * self.cost.factors.get(kernel.name, 1.0)

    def _finish(self, v: int, start: float, end: float) -> None:
        n = self.at[v]
        kind: Literal["run", "wait"] = "run" if isinstance(self.program.lanes[v][n], Run) else "wait"
        self.spans[v].append(Span(v, n, self.next_operators[v][n], start, end, kind))
        self.at[v] += 1

    def _signal(self, event: int, now: float, v: int) -> None:
        given = self.signals.setdefault(event, [])
        given.append((now, v))
        for start, u in self.waiting.pop((event, len(given)), ()):
            end = self._wait_end(Wait(event, len(given)), start, u)
            self._finish(u, start, end)
            heappush(self.agenda, (end, u))

    def _wait_end(self, wait: Wait, start: float, v: int) -> float:
        if wait.arrivals < 1:
            return start + self.cost.wait_us
        last, signaller = self.signals[wait.event][wait.arrivals - 1]
        if wait.arrivals == 1 and signaller == v:  # what a lane has done itself it need not be told
            return start + self.cost.wait_us
        if self.program.is_barrier(wait.event):
            return self.cost.barrier_end_us(last)
        return self.cost.wait_end_us(start, last)
