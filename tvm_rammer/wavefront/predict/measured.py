"""A measured run of a program as a `Timeline`, like a simulated one."""

from collections.abc import Sequence

from ...ir import RProgram, Run, Signal
from .timeline import Span, Timeline, next_operators


def measured_timeline(program: RProgram, begin_us: Sequence[float], end_us: Sequence[Sequence[float]]) -> Timeline:
    """Make a timeline of the measured times of a program's instructions.

    Parameters
    ----------
    program : RProgram
    begin_us : sequence of float
        When each lane began, in microseconds.
    end_us : sequence of sequence of float
        For each lane, when each of its instructions ended.

    Returns
    -------
    Timeline
        A signal is given when its instruction ended.
    """
    spans: list[Span] = []
    signals: dict[int, list[tuple[float, int]]] = {}
    waits = [0.0] * len(program.lanes)
    for v, lane in enumerate(program.lanes):
        now = begin_us[v]
        for n, (instruction, operator) in enumerate(zip(lane, next_operators(lane), strict=True)):
            end = end_us[v][n]
            if isinstance(instruction, Signal):
                signals.setdefault(instruction.event, []).append((end, v))
            elif isinstance(instruction, Run):
                spans.append(Span(v, n, operator, now, end, "run"))
            else:
                spans.append(Span(v, n, operator, now, end, "wait"))
                waits[v] += end - now
            now = end
    given = {event: tuple(sorted(times)) for event, times in sorted(signals.items())}
    makespan_us = max((span.end_us for span in spans), default=0.0)
    return Timeline.of(tuple(spans), makespan_us, given, tuple(waits))
