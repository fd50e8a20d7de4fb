from tvm_rammer.wavefront.plan.select_veu import select_veus


def test_equally_free_veus_get_equal_shares() -> None:
    assert select_veus([0.0, 0.0, 0.0], 1.0, 7) == [3, 2, 2]


def test_a_late_veu_gets_what_the_others_would_start_later() -> None:
    assert select_veus([2.0, 0.0], 1.0, 4) == [1, 3]
    assert select_veus([5.0, 0.0], 1.0, 4) == [0, 4]


def test_rtasks_without_a_time_are_spread() -> None:
    assert select_veus([0.0, 0.0], 0.0, 4) == [2, 2]
