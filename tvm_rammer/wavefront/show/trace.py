"""Executions in Chrome's trace event format, which Perfetto and chrome://tracing read."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ...ir import RProgram, Run, unroll
from ..cost import CostModel
from ..predict.critical_path import Causes
from ..predict.simulate import simulate
from ..predict.timeline import Span, Timeline

_INSIDE_US = 1e-3
"""An arrow begins so long before its signal, since it is attached to the box that holds its time."""

TraceEvent = dict[str, Any]


def trace_json(
    programs: Sequence[RProgram], cost: CostModel | None = None, timelines: Sequence[Timeline] | None = None
) -> str:
    """Write programs one after the other as a trace: a thread for each vEU, an arrow for each signal waited for.

    Parameters
    ----------
    programs : sequence of RProgram
        In launch order.
    cost : CostModel, optional
        The cost model of the simulation; without it synchronisation costs nothing.
    timelines : sequence of Timeline, optional
        A measured run of each program; without it they are simulated.

    Returns
    -------
    str
        A JSON object with `traceEvents`; times are in microseconds. Category `run` or `wait` are spans of the
        timelines, `launch` are launches.
    """
    cost = cost or CostModel()
    programs = [unroll(program) for program in programs]
    timelines = timelines or [simulate(program, cost) for program in programs]
    return json.dumps({"traceEvents": list(_events(programs, cost, timelines)), "displayTimeUnit": "ns"})


def _events(programs: Sequence[RProgram], cost: CostModel, timelines: Sequence[Timeline]) -> Iterator[TraceEvent]:
    lanes = max((len(program.lanes) for program in programs), default=0)
    yield {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "vDevice"}}
    for tid, name in enumerate(["launches", *(f"vEU {v}" for v in range(lanes))]):
        yield {"ph": "M", "name": "thread_name", "pid": 0, "tid": tid, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": tid, "args": {"sort_index": tid}}
    start_us, arrows = 0.0, 0
    for program, timeline in zip(programs, timelines, strict=True):
        yield _box("launch", program.name, 0, start_us, cost.launch_us)
        start_us += cost.launch_us
        for span in timeline.spans:
            yield _span(program, span, start_us)
        for arrow in _arrows(program, cost, timeline, start_us):
            yield {**arrow, "id": arrows // 2}
            arrows += 1
        start_us += timeline.makespan_us


def _box(category: str, name: str, tid: int, start_us: float, length_us: float) -> TraceEvent:
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, "ts": start_us, "dur": length_us}


def _span(program: RProgram, span: Span, start_us: float) -> TraceEvent:
    name = program.graph.operators[span.operator].name if span.operator >= 0 else "the end"
    length_us = span.end_us - span.start_us
    box = _box(span.kind, name, span.lane + 1, start_us + span.start_us, length_us)
    instruction = program.lanes[span.lane][span.instruction]
    if isinstance(instruction, Run):
        kernel = program.kernels[instruction.operator].name
        box["args"] = {"kernel": kernel, "start": instruction.start, "count": instruction.count}
    else:
        box["name"] = f"wait before {name}"
        box["args"] = {"event": instruction.event}
    return box


def _arrows(program: RProgram, cost: CostModel, timeline: Timeline, start_us: float) -> Iterator[TraceEvent]:
    """Two events for each wait that another lane's signal ended: where the arrow starts, and where it ends."""
    common = {"cat": "signal", "name": "signal", "pid": 0}
    for span, cause in Causes(program, cost, timeline).between_lanes():
        begin_us = start_us + max(0.0, cause.time_us - _INSIDE_US)
        yield {"ph": "s", **common, "tid": cause.lane + 1, "ts": begin_us}
        yield {"ph": "f", "bp": "e", **common, "tid": span.lane + 1, "ts": start_us + span.end_us}
