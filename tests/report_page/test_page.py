"""The data of a page: complete, safe to embed, and bounded."""

import html.parser
import json
import pathlib
import re
from dataclasses import replace

import pytest

import tvm_rammer.errors
from tvm_rammer.ir import Buffer, Place, unroll
from tvm_rammer.report_page import report_html
from tvm_rammer.report_page.lanes import JOINED, RUN, WAIT
from tvm_rammer.report_page.page import embedded, page_data
from tvm_rammer.runtime.profiler import Profile
from tvm_rammer.wavefront import CostModel, critical_path, measured_timeline, simulate

from .plans import DEVICE, handed_over, record_of

PACKAGE = pathlib.Path(tvm_rammer.errors.__file__).parent
COST = CostModel.of(DEVICE)
NASTY = """</script><script>x="'&amp;<!--\u2028"""


class Reader(html.parser.HTMLParser):
    """The data of a page, and the elements and addresses in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.texts: dict[str, str] = {}

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, text):
        if self.tags:
            name = f"{self.tags[-1]}{self.tags.count(self.tags[-1])}"
            self.texts[name] = self.texts.get(name, "") + text


def read(page: str) -> tuple[Reader, dict]:
    reader = Reader()
    reader.feed(page)
    return reader, json.loads(reader.texts["script1"])


def profile_of(record, slower: float = 2.0) -> Profile:
    """A profile of runs in which everything took longer by the same factor."""
    cost = CostModel(factors={k.name: slower for p in record.programs for k in p.kernels})
    times = {k.name: slower * k.rtask_us for p in record.programs for k in p.kernels}
    return Profile(record, tuple(simulate(unroll(p), cost) for p in record.programs), times)


def spans_of(data: dict, program: int, execution: int, lane: int) -> list[tuple[float, float]]:
    """Start and end of each box, in microseconds."""
    times, now, spans = data["lanes"]["programs"][program]["executions"][execution]["times"][lane], 0, []
    for gap, length in zip(times[::2], times[1::2], strict=True):
        spans.append(((now + gap) / 1e3, (now + gap + length) / 1e3))
        now += gap + length
    return spans


def test_every_run_and_wait_is_a_box_at_its_time():
    record = record_of(handed_over(["a", "b", "c"]), handed_over(["d", "e"], "region1_0"))
    profile = profile_of(record)
    data = page_data(record, profile=profile)
    assert data["executions"] == ["planned", "measured"]
    for p, program in enumerate(record.programs):
        for e, timeline in enumerate((simulate(program, COST), profile.timelines[p])):
            for v, spans in enumerate(timeline.by_lane()):
                expected = [(pytest.approx(s.start_us, abs=1e-3), pytest.approx(s.end_us, abs=1e-3)) for s in spans]
                assert spans_of(data, p, e, v) == expected
                boxes = data["lanes"]["programs"][p]["lanes"][v]
                assert boxes[::5] == [RUN if s.kind == "run" else WAIT for s in spans]
                named = [data["operators"][number][0] for number in boxes[1::5]]
                assert named == [program.graph.operators[s.operator].name for s in spans]
    assert data["lanes"]["spans"] == data["lanes"]["boxes"] == 2 * (5 + 3)


def test_a_wait_names_what_it_is_for_and_whose_signal_ended_it():
    program = handed_over(["a", "b"])
    (drawn,) = page_data(record_of(program))["lanes"]["programs"]
    assert drawn["lanes"][0][5:10] == [WAIT, 1, 0, 2, 0]
    assert drawn["needs"] == [[1, 0]]
    (run,) = drawn["executions"]
    pairs = [run["causes"][n : n + 4] for n in range(0, len(run["causes"]), 4)]
    assert all(cause_lane != lane and cause_box == 0 for lane, _, cause_lane, cause_box in pairs)
    path = [tuple(run["path"][n : n + 2]) for n in range(0, len(run["path"]), 2)]
    steps = critical_path(program, COST)
    assert len(path) == len(steps)
    assert [lane for lane, _ in path] == [step.lane for step in steps]


def test_kernels_have_planned_and_measured_times_and_a_bound():
    record = record_of(handed_over(["a", "b", "c"]))
    rows = page_data(record, profile=profile_of(record, 3.0))["kernels"]
    assert [row["function"] for row in rows] == ["f_c", "f_b", "f_a"]
    assert rows[0]["tiling"] == "rows parts2"
    for row in rows:
        assert row["measured_us"] == pytest.approx(3 * row["planned_us"])
        assert row["bound_us"] == pytest.approx(row["planned_us"])
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert [row["measured_us"] for row in page_data(record)["kernels"]] == [None] * 3


def test_what_lies_within_another_buffer_has_a_bound():
    program = handed_over(["a", "b"])
    graph = program.graph
    owner = Buffer("both", (8,), "float32", "intermediate")
    view = replace(graph.buffers[1], kind="view", place=Place(len(graph.buffers), 16))
    buffers = (graph.buffers[0], view, *graph.buffers[2:], owner)
    record = record_of(replace(program, graph=replace(graph, buffers=buffers)))
    assert [row["bound_us"] for row in page_data(record)["kernels"]] == [4, 2]


def test_what_was_left_to_stock_tvm_is_counted_by_reason():
    record = record_of(
        handed_over(["a"]), stock=(("sort", "no rKernel"), ("sort", "no rKernel"), ("topk", "two outputs"))
    )
    assert page_data(record)["stock"] == [["sort", "no rKernel", 2], ["topk", "two outputs", 1]]


def test_a_run_whose_veus_took_turns_says_so():
    program = handed_over(["a", "b"])
    record, (lane, _) = record_of(program), program.lanes
    turns = measured_timeline(program, [0.0, 1.0], [[1.0 + n for n in range(len(lane))], [8.0 + n for n in range(5)]])
    assert simulate(program, COST).utilisation > 0.6
    assert read(report_html(record, "m", profile=profile_of(record)))[1]["note"] == ""
    told = read(report_html(record, "m", profile=Profile(record, (turns,), profile_of(record).rtask_us)))[1]["note"]
    assert told.startswith("In the measured run the vEUs took turns")


def test_names_cannot_leave_the_data():
    record = record_of(handed_over([NASTY, 'b"']), stock=((NASTY, NASTY),))
    reader, data = read(report_html(record, NASTY, note=NASTY))
    assert reader.tags.count("script") == 2
    assert data["model"] == data["note"] == data["operators"][0][0] == NASTY
    assert reader.texts["title1"].strip() == f"{NASTY} · tvm_rammer"
    assert not set(embedded({"<": [NASTY]})) & set("<>&\u2028")


def test_the_page_needs_nothing_else():
    page = report_html(record_of(handed_over(["a", "b"])), "model")
    reader, _ = read(page)
    assert reader.addresses == ["data:,"]
    assert not re.search(r"https?:|url\(|@import|\bimport\(|fetch\(|XMLHttp", page)
    assert "default-src 'none'" in page


def test_scripts_do_not_end_their_element():
    for path in (PACKAGE / "report_page").glob("*.js"):
        assert "</" not in path.read_text(encoding="utf-8"), path.name


def test_large_plans_make_pages_of_bounded_size():
    record = record_of(handed_over([f"operator_{n}_of_many" for n in range(5000)]))
    profile = profile_of(record)
    whole = page_data(record, profile=profile)
    assert whole["lanes"]["boxes"] == whole["lanes"]["spans"] == 19_998
    joined = page_data(record, profile=profile, most_boxes=1000)
    assert joined["lanes"]["spans"] == 19_998
    assert 500 <= joined["lanes"]["boxes"] <= 1002
    assert len(joined["operators"]) <= 1002
    kinds = joined["lanes"]["programs"][0]["lanes"][0][::5]
    assert JOINED in kinds
    assert spans_of(joined, 0, 1, 0)[-1][1] == pytest.approx(profile.timelines[0].makespan_us, abs=1e-3)
    assert (joined["kernels_in_all"], len(joined["kernels"])) == (5000, 2000)
    assert len(report_html(record, "model", profile=profile)) < 3_000_000
