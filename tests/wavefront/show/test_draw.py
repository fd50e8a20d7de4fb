"""Pictures are well-formed, and hold what they should."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from tvm_rammer.ir import RProgram, Run
from tvm_rammer.wavefront import CostModel, schedule_svg

from ..graphs import BRANCHES, SYNC_COSTS, plan

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: str, tag: str, kind: str) -> list[ET.Element]:
    return [e for e in ET.fromstring(svg).iter(SVG + tag) if e.get("class") == kind]


def runs(programs: tuple[RProgram, ...]) -> int:
    return sum(isinstance(i, Run) for program in programs for lane in program.lanes for i in lane)


def test_a_row_for_each_veu_and_a_box_for_each_run_and_wait() -> None:
    programs = plan(BRANCHES, veus=3, cost=SYNC_COSTS, a=(3, 1.0), c=(4, 2.0))
    svg = schedule_svg(programs, SYNC_COSTS)
    assert [e.get("id") for e in elements(svg, "g", "lane")] == ["veu-0", "veu-1", "veu-2"]
    assert len(elements(svg, "rect", "run")) == runs(programs)
    assert len(elements(svg, "rect", "wait")) == programs[0].waits() > 0
    assert elements(svg, "line", "signal")


def test_operators_have_distinct_colours_and_a_legend() -> None:
    programs = plan(BRANCHES, veus=2, cost=SYNC_COSTS)
    svg = schedule_svg(programs, SYNC_COSTS)
    assert len({e.get("fill") for e in elements(svg, "rect", "run")}) == len(BRANCHES)
    texts = [e.text for e in ET.fromstring(svg).iter(SVG + "text")]
    assert set(BRANCHES) <= set(texts)


def test_a_pointer_shows_operator_rtasks_kernel_and_times() -> None:
    (program,) = plan({"a": ""}, veus=1, a=(3, 2.0))
    titles = [e.text for e in ET.fromstring(schedule_svg([program])).iter(SVG + "title")]
    assert "a: 3 rTasks 0..2, kernel k_a_0, 0.00 to 6.00 µs" in titles


def test_several_programs_follow_each_other() -> None:
    cost = CostModel(launch_us=1.0, signal_us=5.0)
    programs = plan({"a": "", "b": "a"}, veus=2, cost=cost, a=(2, 1.0), b=(2, 1.0))
    svg = schedule_svg(programs, cost)
    assert len(elements(svg, "g", "program")) == 2
    assert len(elements(svg, "g", "lane")) == 2
    first, second = (float(e.get("x") or 0) for e in elements(svg, "g", "lane")[0].iter(SVG + "rect"))
    # 4 us are 1200 units wide, and 2 us lie between the two.
    assert second - first == 600


def test_names_are_escaped() -> None:
    (program,) = plan({"a": ""}, veus=1)
    operator = replace(program.graph.operators[0], name='<a & "b">')
    svg = schedule_svg([replace(program, graph=replace(program.graph, operators=(operator,)))])
    assert any(e.text == '<a & "b">' for e in ET.fromstring(svg).iter(SVG + "text"))


def test_nothing_to_draw() -> None:
    assert elements(schedule_svg(()), "g", "lane") == []


def test_a_large_plan_is_drawn_with_fewer_boxes() -> None:
    lanes = tuple((Run(0, 300 * v, 1), *(Run(0, 300 * v + n, 1) for n in range(1, 300))) for v in range(80))
    (small,) = plan({"a": ""}, veus=1)
    kernels = (replace(small.kernels[0], num_rtasks=24_000),)
    svg = schedule_svg([replace(small, kernels=kernels, lanes=lanes)])
    assert len(elements(svg, "g", "lane")) == 80
    assert 80 < len(elements(svg, "rect", "run")) <= 20_100
    assert len(svg) < 4_000_000
