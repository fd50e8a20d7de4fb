import pytest

from tvm_rammer.errors import ScheduleError
from tvm_rammer.ir import RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import CostModel, Span, simulate

from ..graphs import SYNC_COSTS, make_graph, make_kernels


def program_of(*lanes: tuple[Run | Signal | Wait, ...], num_events: int = 1) -> RProgram:
    graph = make_graph({"a": "", "b": "a"})
    kernels = make_kernels(a=(4, 2.0), b=(2, 3.0))
    return RProgram("p", graph, (kernels["f_a"][0], kernels["f_b"][0]), lanes, num_events, {1: 0}, 512)


def test_times_by_hand() -> None:
    lanes = (
        (Run(0, 0, 3), Signal(0), Wait(0, 2), Run(1, 0, 1)),
        (Run(0, 3, 1), Signal(0), Wait(0, 2), Run(1, 1, 1)),
    )
    timeline = simulate(program_of(*lanes), SYNC_COSTS)
    assert timeline.spans == (
        Span(0, 0, 0, 0.0, 6.0, "run"),
        Span(0, 2, 1, 6.0, 7.0, "wait"),
        Span(0, 3, 1, 7.0, 10.0, "run"),
        Span(1, 0, 0, 0.0, 2.0, "run"),
        Span(1, 2, 1, 2.0, 7.0, "wait"),
        Span(1, 3, 1, 7.0, 10.0, "run"),
    )
    assert timeline.makespan_us == 10
    assert timeline.utilisation == (9 + 5) / 20
    assert timeline.signals == {0: ((2.0, 1), (6.0, 0))}


def test_a_wait_whose_event_has_come_costs_little() -> None:
    timeline = simulate(program_of((Run(0, 0, 1), Signal(0)), (Run(0, 1, 3), Wait(0, 1), Run(1, 0, 2))), SYNC_COSTS)
    assert timeline.makespan_us == 6 + 0.25 + 6


def test_a_wait_for_some_arrivals_takes_the_first() -> None:
    lanes = ((Run(0, 0, 3), Signal(0)), (Run(0, 3, 1), Signal(0)), (Wait(0, 1), Run(1, 0, 2)))
    assert simulate(program_of(*lanes), CostModel()).makespan_us == 2 + 6


def test_signals_of_one_lane_are_counted_in_order() -> None:
    lanes = ((Run(0, 0, 1), Signal(0), Run(0, 1, 3), Signal(0)), (Wait(0, 1), Run(1, 0, 1), Wait(0, 2), Run(1, 1, 1)))
    timeline = simulate(program_of(*lanes), CostModel(signal_us=0.5))
    assert [s.end_us for s in timeline.spans if s.lane == 1] == [2.5, 5.5, 8.5, 11.5]


def test_an_idle_program_takes_no_time() -> None:
    timeline = simulate(program_of((), ()), SYNC_COSTS)
    assert (timeline.spans, timeline.makespan_us, timeline.utilisation) == ((), 0.0, 0.0)


def test_lanes_that_wait_for_ever_are_reported() -> None:
    with pytest.raises(ScheduleError, match=r"'p': lanes \[1\] wait for ever"):
        simulate(program_of((Run(0, 0, 4), Signal(0)), (Wait(0, 2), Run(1, 0, 2))), SYNC_COSTS)
