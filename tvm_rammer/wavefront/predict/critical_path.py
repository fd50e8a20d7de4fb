"""Why a plan takes as long as it does: the chain of runs, waits and signals that ends last."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...ir import RProgram, Signal, Wait, unroll
from ..cost import CostModel
from .simulate import simulate
from .timeline import Span, Timeline


@dataclass(frozen=True, slots=True)
class PathStep:
    """A part of a critical path.

    Parameters
    ----------
    lane : int
        Of the vEU that spends it; for a signal the lane that waits for it.
    operator : int
        Whose rTasks run, or wait; -1 for a wait that no rTask follows.
    start_us, end_us : float
        A step begins where the one before it ends.
    kind : {"run", "wait", "signal"}
        A wait for an event that was complete; or a signal on its way from the lane of the step before.
    """

    lane: int
    operator: int
    start_us: float
    end_us: float
    kind: Literal["run", "wait", "signal"]


def critical_path(program: RProgram, cost: CostModel, timeline: Timeline | None = None) -> tuple[PathStep, ...]:
    """Find the chain that determines a program's makespan.

    Parameters
    ----------
    program : RProgram
    cost : CostModel
    timeline : Timeline, optional
        `simulate(program, cost)`, where the caller has it already.

    Returns
    -------
    tuple of PathStep
        In order of time, without a gap from 0 to the makespan; empty for a program that takes no step.
    """
    program = unroll(program)
    timeline = timeline or simulate(program, cost)
    if not timeline.spans:
        return ()
    lanes = timeline.by_lane()
    causes = Causes(program, cost, timeline)
    return tuple(_backwards(max(timeline.spans, key=lambda span: span.end_us), lanes, causes))[::-1]


def _backwards(last: Span, lanes: list[list[Span]], causes: "Causes") -> Iterator[PathStep]:
    span: Span | None = last
    while span:
        cause = causes.of(span)
        if cause:
            yield PathStep(span.lane, span.operator, cause.time_us, span.end_us, "signal")
            span = _before(lanes[cause.lane], cause.instruction)
        else:
            yield PathStep(span.lane, span.operator, span.start_us, span.end_us, span.kind)
            span = _before(lanes[span.lane], span.instruction)


def _before(spans: list[Span], instruction: int) -> Span | None:
    """The last span of a lane before one of its instructions."""
    at = bisect_left(spans, instruction, key=lambda span: span.instruction)
    return spans[at - 1] if at else None


@dataclass(frozen=True, slots=True)
class Cause:
    """The signal that ended a wait: its lane, its position there, and its time."""

    lane: int
    instruction: int
    time_us: float


class Causes:
    """Tells which signal each wait of a program really waited for.

    Parameters
    ----------
    program : RProgram
    cost : CostModel
    timeline : Timeline
        `simulate(program, cost)`, or a measured run: there a wait may take longer than `cost` says although its event
        was complete, as where its thread did not run.
    """

    def __init__(self, program: RProgram, cost: CostModel, timeline: Timeline) -> None:
        self._program, self._cost, self._timeline = program, cost, timeline
        self._given_at: dict[tuple[int, int], list[int]] = defaultdict(list)
        for v, n, instruction in program.instructions():
            if isinstance(instruction, Signal):
                self._given_at[instruction.event, v].append(n)

    def of(self, span: Span) -> Cause | None:
        """The last signal that a wait needed; None for a run, and for a wait whose event was complete before."""
        wait = self._program.lanes[span.lane][span.instruction]
        if not isinstance(wait, Wait) or wait.arrivals < 1:
            return None
        given = self._timeline.signals[wait.event]
        time_us, lane = given[wait.arrivals - 1]
        passed = time_us + self._cost.signal_us <= span.start_us + self._cost.wait_us
        if passed and not self._program.is_barrier(wait.event):
            return None
        nth = sum(by == lane for _, by in given[: wait.arrivals - 1])
        return Cause(lane, self._given_at[wait.event, lane][nth], time_us)

    def between_lanes(self) -> Iterator[tuple[Span, Cause]]:
        """Yield each wait that the signal of another lane ended, with that signal."""
        for span in self._timeline.spans:
            cause = self.of(span)
            if cause and cause.lane != span.lane:
                yield span, cause
