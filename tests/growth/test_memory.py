"""Calls and compilations leave nothing behind; `scripts/bench compiling --leaks` makes 100,000 and 300 of them."""

import pytest

from .memory import after_calls, after_compilations


@pytest.mark.slow
def test_calls_leave_nothing():
    assert after_calls(1000, 10_000) < 2  # megabytes: some 200 bytes a call would be more


@pytest.mark.slow
def test_compilations_leave_nothing():
    assert after_compilations(20, 40) < 8  # megabytes: a small module has several hundred kilobytes
