"""Which vEU gets which rTask where their data arrives at different times."""

from tvm_rammer.wavefront.plan.arrival import NEVER, Arrival
from tvm_rammer.wavefront.plan.select_veu_by_data import select_veus_by_data


def written_by(veu: int, at_us: float) -> Arrival:
    """Data that one vEU alone has written."""
    return Arrival(veu, at_us, NEVER, veu)


def anywhere(at_us: float) -> Arrival:
    return Arrival(None, at_us, at_us, None)


def test_rtasks_stay_where_their_data_is() -> None:
    arrivals = [written_by(2 - t // 3, 3.0) for t in range(9)]
    assert select_veus_by_data(arrivals, [3.0] * 3, 1.0, 1.0) == {0: [[6, 7, 8]], 1: [[3, 4, 5]], 2: [[0, 1, 2]]}


def test_an_idle_veu_helps_when_the_signal_is_worth_it() -> None:
    arrivals = [written_by(0, 4.0)] * 4
    assert select_veus_by_data(arrivals, [4.0, 0.0], 3.0, 1.0) == {0: [[0, 2]], 1: [[1, 3]]}
    assert select_veus_by_data(arrivals, [4.0, 0.0], 1.0, 9.0) == {0: [[0, 1, 2, 3]]}


def test_neighbours_share_a_veu_where_all_are_equally_early() -> None:
    assert select_veus_by_data([anywhere(1.0)] * 5, [0.0, 0.0], 1.0, 1.0) == {0: [[0, 1, 2]], 1: [[3, 4]]}


def test_what_is_ready_earlier_runs_first_and_waits_for_itself_only() -> None:
    arrivals = [anywhere(8.0), anywhere(8.0), anywhere(1.0), anywhere(1.0)]
    assert select_veus_by_data(arrivals, [0.0, 0.0], 1.0, 1.0) == {0: [[2], [0]], 1: [[3], [1]]}
