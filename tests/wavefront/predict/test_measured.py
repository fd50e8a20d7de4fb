"""Timelines of measured runs."""

import pytest
from hypothesis import given, settings

from tvm_rammer.ir import RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import CostModel, Span, critical_path, measured_timeline, simulate, trace_json

from ..graphs import SYNC_COSTS, make_graph, make_kernels, random_plans


def test_times_by_hand() -> None:
    lanes = (
        (Run(0, 0, 3), Signal(0), Wait(0, 2), Run(1, 0, 1)),
        (Run(0, 3, 1), Signal(0), Wait(0, 2), Run(1, 1, 1)),
    )
    kernels = make_kernels(a=(4, 2.0), b=(2, 3.0))
    graph = make_graph({"a": "", "b": "a"})
    program = RProgram("p", graph, (kernels["f_a"][0], kernels["f_b"][0]), lanes, 1, {1: 0}, 512)
    timeline = measured_timeline(program, (0.0, 0.5), ((6.0, 6.25, 7.0, 10.0), (2.5, 2.75, 6.75, 9.75)))
    assert timeline.spans == (
        Span(0, 0, 0, 0.0, 6.0, "run"),
        Span(0, 2, 1, 6.25, 7.0, "wait"),
        Span(0, 3, 1, 7.0, 10.0, "run"),
        Span(1, 0, 0, 0.5, 2.5, "run"),
        Span(1, 2, 1, 2.75, 6.75, "wait"),
        Span(1, 3, 1, 6.75, 9.75, "run"),
    )
    assert timeline.makespan_us == 10.0
    assert timeline.utilisation == (9.0 + 5.0) / 20.0
    assert timeline.signals == {0: ((2.75, 1), (6.25, 0))}
    assert timeline.wait_us == (0.75, 4.0)
    assert '"name": "wait before b"' in trace_json([program], SYNC_COSTS, [timeline])
    # The last signal is the first lane's: the second one's wait ends with it.
    assert {step.kind for step in critical_path(program, SYNC_COSTS, timeline)} == {"run", "signal"}


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_a_simulation_that_is_measured_is_itself(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        simulated = simulate(program, SYNC_COSTS)
        ends = {(span.lane, span.instruction): span.end_us for span in simulated.spans}
        end_us: list[list[float]] = []
        for v, lane in enumerate(program.lanes):
            now, times = 0.0, []
            for n, instruction in enumerate(lane):
                now = ends.get((v, n), now)
                assert ((v, n) in ends) != isinstance(instruction, Signal)
                times.append(now)
            end_us.append(times)
        measured = measured_timeline(program, [0.0] * len(program.lanes), end_us)
        assert measured.spans == simulated.spans
        assert measured.signals == {event: tuple(sorted(given)) for event, given in simulated.signals.items()}
        assert measured.wait_us == pytest.approx(simulated.wait_us)
        assert (measured.makespan_us, measured.utilisation) == (simulated.makespan_us, simulated.utilisation)


def test_factors_correct_a_kernels_own_time() -> None:
    (kernel,) = make_kernels(a=(4, 2.0))["f_a"]
    cost = CostModel(factors={kernel.name: 2.5})
    assert cost.rtask_us(kernel) == 5.0
    assert cost.run_us(kernel, Run(0, 0, 3)) == 15.0
    assert cost.operator_us(kernel, 2) == 10.0
    assert CostModel(factors={"another": 5.0}).rtask_us(kernel) == 2.0
