"""Clocks in one integer against clocks as lists."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_rammer.wavefront.plan.clocks import ClockArithmetic, pack, veus_of, without

VEUS = 5
CLOCKS = ClockArithmetic.of(VEUS)
ENTRIES = st.lists(st.integers(0, 3) | st.integers(0, 2**31 - 1), min_size=VEUS, max_size=VEUS)


def packed(entries: list[int]) -> int:
    return pack(dict(enumerate(entries)))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(ENTRIES, ENTRIES)
def test_fields_do_not_disturb_each_other(a: list[int], b: list[int]) -> None:
    assert CLOCKS.merge(packed(a), packed(b)) == packed([max(x, y) for x, y in zip(a, b, strict=True)])
    assert CLOCKS.common(packed(a), packed(b)) == packed([min(x, y) for x, y in zip(a, b, strict=True)])
    behind = tuple(v for v in range(VEUS) if a[v] < b[v])
    assert veus_of(CLOCKS.behind(packed(a), packed(b))) == behind
    assert CLOCKS.covers(packed(a), packed(b)) == (not behind)


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(st.lists(ENTRIES, max_size=4))
def test_many_are_merged_at_once(clocks: list[list[int]]) -> None:
    expected = [max(column, default=0) for column in zip([0] * VEUS, *clocks, strict=True)]
    assert CLOCKS.merge_all(map(packed, clocks)) == packed(expected)


@pytest.mark.parametrize("veu", range(VEUS))
def test_one_veu_is_forgotten(veu: int) -> None:
    entries = [3, 1, 4, 1, 5]
    assert without(packed(entries), veu) == packed([0 if v == veu else n for v, n in enumerate(entries)])
