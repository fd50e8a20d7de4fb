"""Trials are shared by predicted time, and nobody is left out."""

import dataclasses

from tests.tuning.models import matmul_task, relu_task
from tvm_rammer.rkernel_gen.tiling import Tiling
from tvm_rammer.tuning.search.budget import MIN_TRIALS, share_trials


def task(share, size):
    """A task of so many tilings and microseconds."""
    tilings = tuple(Tiling("fake", (("n", n),), 1, share) for n in range(size))
    return dataclasses.replace(relu_task(), space=tilings)


def test_shares_follow_predicted_time():
    assert share_trials([task(300.0, 999), task(100.0, 999)], 200) == [150, 50]


def test_each_gets_some_and_none_more_than_it_has():
    assert share_trials([task(1000.0, 20), task(1.0, 999), task(1.0, 3)], 50) == [20, 27, 3]
    given = share_trials([task(1000.0, 999), task(1.0, 999)], 100)
    assert given[1] == MIN_TRIALS
    assert sum(given) == 100


def test_few_trials_go_to_those_that_are_worth_most():
    assert share_trials([task(3.0, 9), task(2.0, 9), task(1.0, 9)], 2) == [1, 1, 0]


def test_no_more_trials_than_tilings():
    assert share_trials([task(3.0, 4), task(2.0, 5)], 1000) == [4, 5]


def test_calls_count():
    one = matmul_task()
    assert dataclasses.replace(one, calls=3).total_us == 3 * one.total_us
