import pytest

from tvm_rammer.errors import ScheduleError
from tvm_rammer.ir import RKernel, Run, Signal, Wait
from tvm_rammer.wavefront import ProgramBuilder
from tvm_rammer.wavefront.problem import make_problem

from ..graphs import SYNC_COSTS, make_graph, make_kernels

CHAIN = {"a": "", "b": "a", "c": "b"}
KERNELS = make_kernels(a=(8, 1.0), b=(2, 1.0), c=(1, 1.0))


def builder_of(veus: int) -> ProgramBuilder:
    return ProgramBuilder(make_problem(make_graph(CHAIN), KERNELS, SYNC_COSTS, veus, "auto"))


def kernel(name: str) -> RKernel:
    return KERNELS[f"f_{name}"][0]


def test_rtasks_appended_one_by_one_become_one_run() -> None:
    builder = builder_of(2)
    for index in range(8):
        builder.append(Run(0, index, 1), index % 2, kernel("a"))
    assert builder.finish()[0] == ((Run(0, 0, 4, 2),), (Run(0, 1, 4, 2),))


def test_rtasks_that_form_no_progression_stay_apart() -> None:
    builder = builder_of(1)
    for index in (0, 1, 3, 2, 4, 5, 7, 6):
        builder.append(Run(0, index, 1), 0, kernel("a"))
    assert builder.finish()[0] == ((Run(0, 0, 2), Run(0, 3, 1), Run(0, 2, 2, 2), Run(0, 5, 2, 2), Run(0, 6, 1)),)


def test_a_lane_signals_once_after_the_last_of_its_runs() -> None:
    builder = builder_of(2)
    builder.append(Run(0, 4, 4), 0, kernel("a"))
    builder.append(Run(0, 0, 4), 0, kernel("a"))
    builder.wait(1, [0])
    builder.append(Run(1, 0, 2), 1, kernel("b"))
    lanes, events = builder.finish()
    assert lanes == ((Run(0, 4, 4), Run(0, 0, 4), Signal(0)), (Wait(0, 1), Run(1, 0, 2)))
    assert events == 1


def test_what_a_wait_teaches_includes_what_the_other_lane_knew() -> None:
    builder = builder_of(3)
    builder.append(Run(0, 0, 8), 0, kernel("a"))
    builder.wait(1, [0])
    builder.append(Run(1, 0, 2), 1, kernel("b"))
    builder.wait(2, [1])
    builder.wait(2, [0])
    builder.append(Run(2, 0, 1), 2, kernel("c"))
    assert builder.finish()[0][2] == (Wait(1, 1), Run(2, 0, 1))
    # a ends at 8, b begins at 9 and ends at 11, c begins at 12.
    assert builder.ready_us == [8, 11, 13]


def test_an_operator_of_another_program_is_not_waited_for() -> None:
    builder = builder_of(2)
    builder.wait(0, [0])
    builder.append(Run(1, 0, 2), 0, kernel("b"))
    assert builder.finish() == (((Run(0, 0, 2),), ()), 0)


def test_rollback_restores_everything() -> None:
    builder = builder_of(2)
    builder.append(Run(0, 0, 8), 0, kernel("a"))
    mark, lanes, time_us = builder.mark(), builder.finish(), builder.time_us
    builder.barrier()
    builder.wait(1, [0])
    builder.append(Run(1, 0, 2), 1, kernel("b"))
    assert builder.finish() != lanes
    builder.rollback(mark)
    assert builder.finish() == lanes
    assert builder.time_us == time_us == 18
    assert list(builder.kernels) == [0]
    builder.wait(1, [0])
    assert builder.finish()[0][1] == (Wait(0, 1),)


def test_appending_after_a_wait_is_a_bug_of_the_policy() -> None:
    builder = builder_of(2)
    builder.append(Run(0, 0, 4), 0, kernel("a"))
    builder.wait(1, [0])
    with pytest.raises(ScheduleError, match="'a' appended after a wait for them"):
        builder.append(Run(0, 4, 4), 1, kernel("a"))


def test_starts_are_earlier_where_no_signal_is_needed() -> None:
    builder = builder_of(3)

    def starts() -> list[float]:
        arrival, other = builder.arrivals(1, kernel("b"))
        assert arrival is other
        return [arrival.start_us(veu, ready, SYNC_COSTS.signal_us) for veu, ready in enumerate(builder.ready_us)]

    assert starts() == [0, 0, 0]
    builder.append(Run(0, 0, 8), 1, kernel("a"))
    assert starts() == [9, 8, 9]
