"""Waits are minimal: take any one away, and a dependence is no longer kept."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import RProgram, Wait
from tvm_rammer.wavefront import verify

from ..graphs import BRANCHES, DEVICE, DIAMOND, SYNC_COSTS, plan, random_plans


def without_each_wait(program: RProgram) -> list[RProgram]:
    return [
        replace(program, lanes=(*program.lanes[:v], lane[:n] + lane[n + 1 :], *program.lanes[v + 1 :]))
        for v, lane in enumerate(program.lanes)
        for n, instruction in enumerate(lane)
        if isinstance(instruction, Wait)
    ]


def assert_minimal(program: RProgram) -> None:
    verify(program, device=DEVICE)
    for broken in without_each_wait(program):
        with pytest.raises(VerificationError, match="a wait is missing"):
            verify(broken)


def test_a_diamond_needs_each_of_its_waits() -> None:
    (program,) = plan(DIAMOND, veus=2, cost=SYNC_COSTS, a=(2, 4.0), b=(1, 3.0), c=(1, 2.0))
    # Both lanes wait for the other half of a; the lane of d waits for the other of b and c.
    assert program.waits() == 3
    assert_minimal(program)


@pytest.mark.parametrize("veus", [2, 3, 5])
def test_branches_need_each_of_their_waits(veus: int) -> None:
    (program,) = plan(BRANCHES, veus=veus, cost=SYNC_COSTS, a=(4, 1.0), c=(5, 2.0), f=(3, 1.0), g=(2, 1.0))
    assert program.waits() > veus
    assert_minimal(program)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(random_plans())
def test_random_graphs_need_each_of_their_waits(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        assert_minimal(program)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_plans(sync="global"))
def test_with_barriers_random_graphs_are_in_order_too(programs: tuple[RProgram, ...]) -> None:
    for program in programs:
        verify(program, device=DEVICE)
        assert program.waits() == program.num_events * len(program.lanes)
