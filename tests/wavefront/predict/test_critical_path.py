"""The chain behind a makespan."""

import pytest
from hypothesis import given, settings

from tvm_rammer.ir import RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import CostModel, PathStep, critical_path, measured_timeline, simulate

from ..graphs import BRANCHES, FREE, SYNC_COSTS, plan, random_plans
from .test_simulate import program_of

SHARED = CostModel(launch_us=2.0, signal_us=0.5, wait_us=0.1, barrier_us=0.8, shared_gbps=0.5)


def assert_chain(program: RProgram, cost: CostModel) -> None:
    timeline = simulate(program, cost)
    steps = critical_path(program, cost, timeline)
    assert steps[0].start_us == 0
    assert [step.end_us for step in steps[:-1]] == [step.start_us for step in steps[1:]]
    assert steps[-1].end_us == timeline.makespan_us
    spans = {(s.lane, s.operator, s.start_us, s.end_us, s.kind) for s in timeline.spans}
    for step in steps:
        if step.kind == "signal":
            assert any(s.lane == step.lane and s.kind == "wait" and s.end_us == step.end_us for s in timeline.spans)
        else:
            assert (step.lane, step.operator, step.start_us, step.end_us, step.kind) in spans


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_a_path_has_no_gap_and_is_as_long_as_the_program(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        for cost in (FREE, SYNC_COSTS, SHARED):
            assert_chain(program, cost)


@pytest.mark.parametrize("policy", ["global", "sequential"])
def test_paths_pass_through_barriers(policy: str) -> None:
    (program,) = plan(BRANCHES, veus=3, cost=SHARED, sync="global", policy=policy, a=(3, 1.0), c=(4, 2.0))
    assert program.barriers > 0
    for cost in (FREE, SYNC_COSTS, SHARED):
        assert_chain(program, cost)


def test_the_way_of_a_signal_is_a_step() -> None:
    program = program_of((Run(0, 0, 3), Signal(0)), (Run(0, 3, 1), Wait(0, 1), Run(1, 0, 2)))
    assert critical_path(program, SYNC_COSTS) == (
        PathStep(0, 0, 0.0, 6.0, "run"),
        PathStep(1, 1, 6.0, 7.0, "signal"),
        PathStep(1, 1, 7.0, 13.0, "run"),
    )


def test_a_wait_whose_event_had_come_is_a_step_of_its_own_lane() -> None:
    program = program_of((Run(0, 0, 1), Signal(0)), (Run(0, 1, 3), Wait(0, 1), Run(1, 0, 2)))
    assert [(step.lane, step.kind) for step in critical_path(program, SYNC_COSTS)] == [
        (1, "run"),
        (1, "wait"),
        (1, "run"),
    ]


def test_a_lane_may_signal_an_event_twice() -> None:
    lanes = (Run(0, 0, 1), Signal(0), Run(0, 1, 3), Signal(0)), (Wait(0, 2), Run(1, 0, 2))
    steps = critical_path(program_of(*lanes), SYNC_COSTS)
    assert [(step.start_us, step.end_us) for step in steps] == [(0, 2), (2, 8), (8, 9), (9, 15)]


def test_signals_without_a_price_do_not_send_it_in_circles() -> None:
    lanes = (
        (Run(0, 0, 2), Signal(0), Wait(0, 2), Signal(1), Wait(1, 2), Run(1, 0, 1)),
        (Run(0, 2, 2), Signal(0), Wait(0, 2), Signal(1), Wait(1, 2), Run(1, 1, 1)),
    )
    assert critical_path(program_of(*lanes, num_events=2), FREE)[-1].end_us == 4 + 3


def test_a_program_that_does_nothing_has_no_path() -> None:
    assert critical_path(program_of((), num_events=0), FREE) == ()


def test_a_wait_that_began_after_its_signal_is_a_step_of_its_own_lane_however_long_it_was() -> None:
    """So in a measured run, where a thread may lose its processor in the middle of a wait."""
    program = program_of((Run(0, 0, 1), Signal(0)), (Run(0, 1, 3), Wait(0, 1), Run(1, 0, 2)))
    timeline = measured_timeline(program, [0.0, 0.0], [[2.0, 2.0], [6.0, 9.0, 13.0]])
    assert critical_path(program, SYNC_COSTS, timeline) == (
        PathStep(1, 0, 0.0, 6.0, "run"),
        PathStep(1, 1, 6.0, 9.0, "wait"),
        PathStep(1, 1, 9.0, 13.0, "run"),
    )
