"""Calls and compilations leave nothing behind; `scripts/bench compiling --leaks` makes 100,000 and 300 of them.

Some megabytes come with the first hundred compilations, for what is remembered of functions and for the allocator; the
160 after them added 0.02 MB, and not a byte to what the allocator has given out.
"""

import pytest

from .memory import after_calls, after_compilations, after_growing, left_to_the_collector


@pytest.mark.slow
def test_calls_leave_nothing():
    assert after_calls(1000, 10_000) < 2  # megabytes: some 200 bytes a call would be more


@pytest.mark.slow
def test_compilations_leave_nothing():
    assert after_compilations(100, 20) < 1  # megabytes: 50 KB each, and a small module has several hundred


def test_a_compilation_leaves_no_weights_to_the_collector():
    # Models of a single node, which onnx's evaluator folds, are left; weights and all, these models had 1.3 MB.
    assert left_to_the_collector() < 100_000


@pytest.mark.slow
def test_rows_that_a_loop_adds_are_not_kept_in_each_number_that_there_was():
    """After 900 rounds there are 3.5 MB of them; all that there were have 1.6 GB. malloc itself keeps some 50."""
    assert after_growing(2, 7) < 200  # megabytes
