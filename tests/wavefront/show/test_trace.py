"""Traces that Perfetto can load."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tvm_rammer.ir import RProgram
from tvm_rammer.wavefront import CostModel, simulate, trace_json

from ..graphs import BRANCHES, SYNC_COSTS, plan, random_plans


def events_of(programs: tuple[RProgram, ...], cost: CostModel, phase: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(trace_json(programs, cost))["traceEvents"] if event["ph"] == phase]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_boxes_are_the_spans_of_the_simulation(programs: tuple[RProgram, ...]) -> None:
    expected, start = [], 0.0
    for program in programs:
        timeline = simulate(program, SYNC_COSTS)
        expected.append(("launch", 0, start, SYNC_COSTS.launch_us))
        start += SYNC_COSTS.launch_us
        expected += [(s.kind, s.lane + 1, start + s.start_us, s.end_us - s.start_us) for s in timeline.spans]
        start += timeline.makespan_us
    boxes = events_of(programs, SYNC_COSTS, "X")
    assert [(e["cat"], e["tid"], e["ts"], e["dur"]) for e in boxes] == expected


def test_arrows_lead_from_a_box_to_the_end_of_a_wait_in_another_lane() -> None:
    programs = plan(BRANCHES, veus=3, cost=SYNC_COSTS, a=(3, 1.0), c=(4, 2.0))
    begins, ends = events_of(programs, SYNC_COSTS, "s"), events_of(programs, SYNC_COSTS, "f")
    assert begins and [e["id"] for e in begins] == [e["id"] for e in ends] == list(range(len(begins)))
    boxes = events_of(programs, SYNC_COSTS, "X")
    for begin, end in zip(begins, ends, strict=True):
        assert begin["tid"] != end["tid"]
        assert any(b["tid"] == begin["tid"] and b["ts"] <= begin["ts"] < b["ts"] + b["dur"] for b in boxes)
        waits = [b for b in boxes if b["tid"] == end["tid"] and b["cat"] == "wait"]
        assert any(b["ts"] + b["dur"] == pytest.approx(end["ts"]) for b in waits)


def test_a_wait_whose_event_had_come_has_no_arrow() -> None:
    programs = plan({"a": "", "b": "", "c": "a b"}, veus=2, cost=SYNC_COSTS, a=(1, 9.0), b=(1, 1.0))
    assert [program.waits() for program in programs] == [1]
    assert events_of(programs, SYNC_COSTS, "s") == []


def test_each_veu_is_a_thread_with_its_name() -> None:
    programs = plan({"a": ""}, veus=2, a=(2, 1.0))
    names = [e["args"]["name"] for e in events_of(programs, SYNC_COSTS, "M") if e["name"] == "thread_name"]
    assert names == ["launches", "vEU 0", "vEU 1"]


def test_nothing_to_trace() -> None:
    assert events_of((), SYNC_COSTS, "X") == []
