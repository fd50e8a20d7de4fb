"""The lanes of a model's rPrograms as plain numbers: what each vEU does, once, and when, for each execution."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import RProgram, Run, Signal, Wait
from ..wavefront import CostModel, Span, Timeline, critical_path
from ..wavefront.predict.critical_path import Causes

MOST_BOXES = 24_000
"""Of larger plans neighbouring boxes are joined until there are about so many."""
_MOST_NAMED = 12
"""Operators named of those that a wait is for."""
_LONGEST_NAME = 120

RUN, WAIT, JOINED = 0, 1, 2
"""What a box is: its first number."""


@dataclass(slots=True)
class Names:
    """Numbers the operators that boxes mention, so that a page holds no others.

    Parameters
    ----------
    kernel_rows : mapping of str to int
        For each kernel, by name, its row in the table of kernels.
    """

    kernel_rows: Mapping[str, int]
    rows: list[list[Any]] = field(default_factory=list)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def number(self, program: RProgram, operator: int) -> int:
        """The number of an operator on the page; -1 for none. Its row is its name, its kernel's row and its rTasks."""
        if operator < 0:
            return -1
        name, kernel = program.graph.operators[operator].name, program.kernels[operator]
        key = (program.name, name)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append([shortened(name), self.kernel_rows[kernel.name], kernel.num_rtasks])
        return self._numbers[key]


def shortened(name: str) -> str:
    """A name as the page shows it: of a very long one the middle is left out."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 31]}…{name[-30:]}"


def lanes_of(
    programs: Sequence[RProgram],
    executions: Sequence[Sequence[Timeline]],
    cost: CostModel,
    names: Names,
    most_boxes: int = MOST_BOXES,
) -> dict[str, Any]:
    """Turn plans and their executions into numbers.

    Parameters
    ----------
    programs : sequence of RProgram
        In launch order.
    executions : sequence of sequence of Timeline
        For each execution, such as a simulated and a measured one, a timeline of each program.
    cost : CostModel
        Of the simulation.
    names : Names
        Gets the operators that boxes mention.
    most_boxes : int
        About how many boxes there may be; an empty lane's and a program's last box come on top.

    Returns
    -------
    dict
        `programs`: of each its name, `needs` (for each wait the number of operators that it is for, and the first of
        them), `lanes` (five numbers a box) and `executions`. Times are in nanoseconds: for each box the
        gap before it and its length. Boxes are the same in all executions, so that a box is found in the others by
        its position. `spans`, `boxes`: how many there were, and are.
    """
    spans = sum(len(timeline.spans) for timeline in executions[0]) if executions else 0
    narrowest_us = 0.0
    if spans > most_boxes:
        area_us = sum(t.makespan_us * len(p.lanes) for run in executions for p, t in zip(programs, run, strict=True))
        narrowest_us = area_us / most_boxes
    made = [
        _program(program, timelines, cost, names, narrowest_us)
        for program, *timelines in zip(programs, *executions, strict=True)
    ]
    boxes = sum(len(lane) // 5 for one in made for lane in one["lanes"])
    return {"programs": made, "spans": spans, "boxes": boxes}


def _program(
    program: RProgram, timelines: Sequence[Timeline], cost: CostModel, names: Names, narrowest_us: float
) -> dict[str, Any]:
    rows = [timeline.by_lane() for timeline in timelines]
    groups = [list(_groups([row[v] for row in rows], narrowest_us)) for v in range(len(program.lanes))]
    needs = _Needs(program, names)
    lanes = [
        [number for a, b in groups[v] for number in _box(program, rows[0][v][a:b], names, needs)]
        for v in range(len(program.lanes))
    ]
    box_of = {
        (v, rows[0][v][n].instruction): i
        for v in range(len(program.lanes))
        for i, (a, b) in enumerate(groups[v])
        for n in range(a, b)
    }
    return {
        "name": shortened(program.name),
        "needs": needs.rows,
        "lanes": lanes,
        "executions": [
            _execution(program, timeline, cost, row, groups, box_of)
            for timeline, row in zip(timelines, rows, strict=True)
        ],
    }


def _groups(executions: Sequence[Sequence[Span]], narrowest_us: float) -> Iterator[tuple[int, int]]:
    """Cut a lane into boxes, each at least so wide in one of the executions; yield the first span and the one past."""
    first, count = 0, len(executions[0])
    for n in range(count):
        if n == count - 1 or any(spans[n].end_us - spans[first].start_us >= narrowest_us for spans in executions):
            yield first, n + 1
            first = n + 1


class _Needs:
    """Which operators give the signals of each event."""

    def __init__(self, program: RProgram, names: Names) -> None:
        self.rows: list[list[int]] = []
        self._program, self._names = program, names
        self._row_of: dict[int, int] = {}
        self._givers: dict[int, set[int]] = defaultdict(set)
        for lane in program.lanes:
            operator = -1
            for instruction in lane:
                if isinstance(instruction, Run):
                    operator = instruction.operator
                elif isinstance(instruction, Signal) and operator >= 0:
                    self._givers[instruction.event].add(operator)

    def row(self, event: int) -> int:
        """The row of an event; -1 for a barrier."""
        if self._program.is_barrier(event):
            return -1
        if event not in self._row_of:
            givers = sorted(self._givers[event])
            self._row_of[event] = len(self.rows)
            self.rows.append([len(givers), *(self._names.number(self._program, o) for o in givers[:_MOST_NAMED])])
        return self._row_of[event]


def _box(program: RProgram, spans: Sequence[Span], names: Names, needs: _Needs) -> tuple[int, ...]:
    """Five numbers: what it is, and

    of a run its operator, first rTask, count and step;
    of a wait the operator after it, its row of needs, and the arrivals;
    of joined ones the operator that takes most of the time, and how many runs, waits and different operators.
    """
    if len(spans) > 1:
        share: dict[int, float] = defaultdict(float)
        for span in spans:
            share[span.operator if span.kind == "run" else -1] += span.end_us - span.start_us
        runs = sum(span.kind == "run" for span in spans)
        most = max(share, key=lambda operator: share[operator])
        return JOINED, names.number(program, most), runs, len(spans) - runs, len(share) - (-1 in share)
    span = spans[0]
    instruction, operator = program.lanes[span.lane][span.instruction], names.number(program, span.operator)
    if isinstance(instruction, Run):
        return RUN, operator, instruction.start, instruction.count, instruction.step
    assert isinstance(instruction, Wait)
    return WAIT, operator, needs.row(instruction.event), instruction.arrivals, 0


def _execution(
    program: RProgram,
    timeline: Timeline,
    cost: CostModel,
    rows: Sequence[Sequence[Span]],
    groups: Sequence[Sequence[tuple[int, int]]],
    box_of: Mapping[tuple[int, int], int],
) -> dict[str, Any]:
    causes: list[int] = []
    for span, cause in Causes(program, cost, timeline).between_lanes():
        box = box_of[span.lane, span.instruction]
        before = next((n for n in range(cause.instruction, -1, -1) if (cause.lane, n) in box_of), None)
        first, past = groups[span.lane][box]
        if before is not None and past - first == 1:
            causes += [span.lane, box, cause.lane, box_of[cause.lane, before]]
    at_end = {(s.lane, s.operator, s.end_us): box_of[s.lane, s.instruction] for s in timeline.spans}
    steps = critical_path(program, cost, timeline)
    path = dict.fromkeys((step.lane, at_end[step.lane, step.operator, step.end_us]) for step in steps)
    return {
        "makespan": _ns(timeline.makespan_us),
        "busy": round(timeline.utilisation, 4),
        "in_rtasks": _ns(sum(step.end_us - step.start_us for step in steps if step.kind == "run")),
        "times": [_times(spans, cut) for spans, cut in zip(rows, groups, strict=True)],
        "causes": causes,
        "path": [number for step in path for number in step],
    }


def _times(spans: Sequence[Span], groups: Sequence[tuple[int, int]]) -> list[int]:
    """The gap before each box and its length, exact in sum: the whole lane does not drift by rounding."""
    times, now = [], 0
    for first, past in groups:
        start, end = _ns(spans[first].start_us), _ns(spans[past - 1].end_us)
        times += [start - now, end - start]
        now = end
    return times


def _ns(time_us: float) -> int:
    return round(1e3 * time_us)
