"""How many vEUs a plan is worth: decided by prices, without a clock."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.ir import RProgram
from tvm_rammer.wavefront import POLICIES, CostModel, schedule, schedule_together
from tvm_rammer.wavefront.choose_veus import choose_veus, priced_us

from .graphs import DEVICE, RandomCase, make_graph, make_kernels, plan, random_cases

WAKING = CostModel(launch_us=2.0, signal_us=0.1, wait_us=0.01, barrier_us=0.1, wake_us=20.0)
CHAIN = {"a": "", "b": "a", "c": "b"}


def lanes(programs: tuple[RProgram, ...]) -> int:
    return max(len(program.lanes) for program in programs)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_second_veu_that_saves_less_than_its_waking_is_left_out(policy: str) -> None:
    few, many = ({name: [(1, us), (2, us / 2)] for name in CHAIN} for us in (10.0, 20.0))
    short = plan(CHAIN, veus=2, cost=WAKING, policy=policy, **few)  # saves 15 us
    assert lanes(short) == 1
    assert sum(program.waits() for program in short) == 0
    assert lanes(plan(CHAIN, veus=2, cost=WAKING, policy=policy, **many)) == 2  # saves 30 us


def test_waits_are_a_risk() -> None:
    long = {f"o{n}": f"o{n - 1}" if n else "" for n in range(100)}
    tilings = {name: [(2, 0.4)] for name in long}
    assert lanes(plan(long, veus=2, cost=WAKING, **tilings)) == 1  # saves 40 us, for 198 waits
    alone = dict.fromkeys(long, "")
    assert lanes(plan(alone, veus=2, cost=WAKING, **tilings)) == 2  # the same, for none


def test_the_fewest_of_those_that_are_as_good() -> None:
    tilings = {"a": (2, 100.0)}
    assert [lanes(plan({"a": ""}, veus=veus, cost=WAKING, **tilings)) for veus in (1, 2, 3, 6, 8)] == [1, 2, 2, 2, 2]
    assert lanes(plan({"a": ""}, veus=6, cost=WAKING, a=(6, 100.0))) == 6


def test_a_sum_of_times_in_another_order_is_as_good() -> None:
    free = replace(WAKING, wake_us=0.0)
    (one,) = plan({"a": ""}, veus=1, cost=free, a=[(1, 0.1)])
    two = replace(one, lanes=(*one.lanes, ()), makespan_us=math.nextafter(one.makespan_us, 0.0))
    work_us = one.makespan_us - free.launch_us + 1e-15
    assert free.launch_us + work_us > one.makespan_us > two.makespan_us
    assert lanes(choose_veus(lambda veus: (two,) if veus == 2 else (one,), 2, free, work_us)) == 1


def test_where_all_are_launched_together_none_is_left_out() -> None:
    assert lanes(plan(CHAIN, veus=4, cost=replace(WAKING, wake_us=0.0))) == 4


def test_a_model_keeps_the_veus_of_its_share() -> None:
    graphs = [replace(make_graph({name: ""}), name=name) for name in "ab"]
    programs = schedule_together(
        graphs, make_kernels(a=(2, 1.0), b=(2, 1.0)), DEVICE, veus=4, shares=[1, 1], cost=WAKING
    )
    assert lanes(programs) == 4


@settings(max_examples=60, deadline=None)
@given(random_cases())
def test_no_other_number_has_a_lower_price(case: RandomCase) -> None:
    graph, kernels = make_graph(case.reads, case.nbytes), make_kernels(**case.tilings)
    cost = replace(case.cost, wake_us=3.0)

    def price(veus: int, cost: CostModel) -> float:
        return priced_us(schedule(graph, kernels, DEVICE, veus=veus, cost=cost), replace(cost, wake_us=3.0))

    best = price(case.veus, cost)
    for veus in {1, 2, 4, case.veus}:
        if veus <= case.veus:
            assert best <= price(veus, replace(cost, wake_us=0.0)) + 1e-9
