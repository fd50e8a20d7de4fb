"""Plans checked by hand, and input that is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.errors import ScheduleError
from tvm_rammer.ir import RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import CostModel, schedule

from .graphs import BRANCHES, DEVICE, DIAMOND, SYNC_COSTS, make_graph, make_kernels, plan, random_plans


def test_a_chain_of_single_rtasks_stays_on_one_veu_and_never_waits() -> None:
    (program,) = plan({"a": "", "b": "a", "c": "b"}, veus=3, cost=SYNC_COSTS)
    assert program.lanes == ((Run(0, 0, 1), Run(1, 0, 1), Run(2, 0, 1)), (), ())
    assert program.num_events == 0
    assert program.makespan_us == 10 + 3


def test_a_diamond_on_two_veus() -> None:
    (program,) = plan(DIAMOND, veus=2, cost=SYNC_COSTS, a=(1, 4.0), b=(1, 3.0), c=(1, 2.0))
    # a ends at 4; b follows at once to 7. c sees a at 5 and ends at 7, so d has to wait for it until 8.
    assert program.lanes == (
        (Run(0, 0, 1), Signal(0), Run(1, 0, 1), Wait(1, 1), Run(3, 0, 1)),
        (Wait(0, 1), Run(2, 0, 1), Signal(1)),
    )
    assert program.num_events == 2
    assert program.makespan_us == 10 + 9


def test_neighbouring_rtasks_share_a_veu() -> None:
    (program,) = plan({"a": ""}, veus=3, a=(8, 1.0))
    assert program.lanes == ((Run(0, 0, 3),), (Run(0, 3, 3),), (Run(0, 6, 2),))


def test_rtasks_go_where_they_start_earliest() -> None:
    (program,) = plan({"a": "", "b": ""}, veus=3, a=(1, 2.0), b=(4, 1.0))
    assert program.lanes == ((Run(0, 0, 1),), (Run(1, 0, 2),), (Run(1, 2, 2),))


def test_a_wait_already_implied_is_left_out() -> None:
    # c reads a and b, and b has waited for a: knowing b is knowing a.
    (program,) = plan({"a": "", "b": "a", "c": "b a"}, veus=2, a=(2, 1.0), b=(2, 1.0), c=(2, 1.0))
    assert program.waits() == 4
    assert program.lanes[0] == (Run(0, 0, 1), Signal(0), Wait(0, 2), Run(1, 0, 1), Signal(1), Wait(1, 2), Run(2, 0, 1))


def test_nobody_signals_what_nobody_awaits() -> None:
    (program,) = plan(BRANCHES, veus=4, c=(4, 1.0), e=(2, 1.0))
    awaited = {i.event for lane in program.lanes for i in lane if isinstance(i, Wait)}
    signalled = {i.event for lane in program.lanes for i in lane if isinstance(i, Signal)}
    assert awaited == signalled == set(range(program.num_events))


def test_global_sync_has_a_barrier_between_consecutive_waves() -> None:
    (program,) = plan(BRANCHES, veus=3, cost=SYNC_COSTS, sync="global")
    assert program.num_events == 4
    for lane in program.lanes:
        assert [i for i in lane if not isinstance(i, Run)] == [
            i for event in range(4) for i in (Signal(event), Wait(event, 3))
        ]


def test_global_sync_of_the_sequential_policy_keeps_operators_apart() -> None:
    (program,) = plan({"a": "", "b": ""}, veus=2, policy="sequential", sync="global", cost=SYNC_COSTS)
    assert program.waits() == 2
    assert program.makespan_us == 10 + 1 + 1 + 1


def test_one_veu_never_waits() -> None:
    for sync in ("auto", "global"):
        (program,) = plan(BRANCHES, veus=1, sync=sync)
        assert program.waits() == 0


def test_prices_come_from_the_device() -> None:
    graph, kernels = make_graph({"a": ""}), make_kernels(a=(1, 1.0))
    (program,) = schedule(graph, kernels, DEVICE, veus=2)
    assert program.makespan_us == DEVICE.launch_us + 1.0


def test_an_empty_graph_needs_no_program() -> None:
    assert plan({}, veus=2) == ()
    assert plan({}, veus=2, policy="sequential") == ()


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_programs_cover_each_operator_once(programs: tuple[RProgram, ...]) -> None:
    names = [op.name for program in programs for op in program.graph.operators]
    assert len(names) == len(set(names))
    assert [p.name for p in programs] == [p.graph.name for p in programs] == [f"g_{k}" for k in range(len(programs))]


def test_what_crosses_programs_is_no_intermediate() -> None:
    cheap_launch = CostModel(launch_us=0.5, signal_us=5.0)
    first, second = plan({"a": "", "b": "a"}, veus=2, cost=cheap_launch, a=(2, 1.0), b=(2, 1.0))
    assert [b.kind for b in first.graph.buffers] == ["input", "output"]
    assert [b.kind for b in second.graph.buffers] == ["input", "output"]


def test_unknown_choices_are_refused_by_name() -> None:
    with pytest.raises(ScheduleError, match=r"unknown policy 'best'; choose one of auto, wavefront, sequential"):
        plan(DIAMOND, veus=2, policy="best")
    with pytest.raises(ScheduleError, match=r"unknown sync 'none'; choose one of auto, global"):
        plan(DIAMOND, veus=2, sync="none")


def test_bad_input_is_refused() -> None:
    graph, kernels = make_graph({"a": ""}), make_kernels(a=(1, 1.0))
    with pytest.raises(ScheduleError, match="veus is 0"):
        schedule(graph, kernels, DEVICE, veus=0)
    with pytest.raises(ScheduleError, match="'f_a' has no rKernel"):
        schedule(graph, {"f_a": []}, DEVICE, veus=1)
    with pytest.raises(ScheduleError, match="'f_a' has no rKernel"):
        schedule(graph, {}, DEVICE, veus=1)
    with pytest.raises(ScheduleError, match="has 0 rTasks"):
        schedule(graph, make_kernels(a=(0, 1.0)), DEVICE, veus=1)
    with pytest.raises(ScheduleError, match="rtask_us=nan"):
        schedule(graph, make_kernels(a=(1, float("nan"))), DEVICE, veus=1)
    with pytest.raises(ScheduleError, match="implements 'f_a' but is listed for 'f_b'"):
        schedule(make_graph({"b": ""}), {"f_b": kernels["f_a"]}, DEVICE, veus=1)


def test_a_graph_that_is_not_in_topological_order_is_refused() -> None:
    graph = make_graph({"a": "", "b": "a"})
    backwards = replace(graph, operators=graph.operators[::-1])
    with pytest.raises(ScheduleError, match="'b' reads what 'a' writes, which does not come before it"):
        schedule(backwards, make_kernels(a=(1, 1.0), b=(1, 1.0)), DEVICE, veus=1)
