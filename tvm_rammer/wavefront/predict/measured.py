"""A measured run of a program as a `Timeline`, like a simulated one."""

from collections.abc import Sequence
from typing import Literal

from ...ir import RProgram, Run, Signal, unroll, unrolled_positions
from .timeline import Span, Timeline, next_operators


def measured_timeline(program: RProgram, begin_us: Sequence[float], end_us: Sequence[Sequence[float]]) -> Timeline:
    """Make a timeline of the measured times of a program's instructions.

    Parameters
    ----------
    program : RProgram
    begin_us : sequence of float
        When each lane began, in microseconds.
    end_us : sequence of sequence of float
        For each lane, when each of its instructions ended, in each step; of a signal, when it was about to be given.

    Returns
    -------
    Timeline
        A signal is given when its instruction ended, or right after it. Of a program of several steps it is that of the
        unrolled one.
    """
    if program.steps > 1:
        kept = unrolled_positions(program)
        end_us = [[ends[n] for n in positions] for ends, positions in zip(end_us, kept, strict=True)]
        program = unroll(program)
    spans: list[list[Span]] = [[] for _ in program.lanes]
    signals: dict[int, list[tuple[float, int]]] = {}
    for v, lane in enumerate(program.lanes):
        now = begin_us[v]
        for n, (instruction, operator) in enumerate(zip(lane, next_operators(lane), strict=True)):
            end = end_us[v][n]
            if isinstance(instruction, Signal):
                signals.setdefault(instruction.event, []).append((end, v))
            else:
                kind: Literal["run", "wait"] = "run" if isinstance(instruction, Run) else "wait"
                spans[v].append(Span(v, n, operator, now, end, kind))
            now = end
    return Timeline.of(spans, {event: sorted(given) for event, given in signals.items()})
