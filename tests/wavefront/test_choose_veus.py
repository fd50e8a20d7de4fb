"""How many vEUs a plan is worth: decided by prices, without a clock."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tvm_rammer.ir import RProgram
from tvm_rammer.wavefront import POLICIES, CostModel, schedule, schedule_together
from tvm_rammer.wavefront.choose_veus import choose_veus, priced_us, spent_us

from .graphs import DEVICE, RandomCase, make_graph, make_kernels, plan, random_cases

WAKING = CostModel(launch_us=2.0, signal_us=0.1, wait_us=0.01, barrier_us=0.1, wake_us=20.0)
CHAIN = {"a": "", "b": "a", "c": "b"}


def lanes(programs: tuple[RProgram, ...]) -> int:
    return max(len(program.lanes) for program in programs)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("us", "saved_us", "veus", "brief"), [(1.0, 1.5, 1, False), (10.0, 15.0, 2, True), (20.0, 30.0, 2, False)]
)
def test_who_is_woken_for_what_a_second_veu_saves(
    policy: str, us: float, saved_us: float, veus: int, *, brief: bool
) -> None:
    """Waking takes 20 us. What saves less goes on without those who sleep; what saves next to nothing has one vEU."""
    programs = plan(CHAIN, veus=2, cost=WAKING, policy=policy, **{name: [(1, us), (2, us / 2)] for name in CHAIN})
    assert lanes(programs) == veus
    assert {program.brief for program in programs} == {brief}
    assert spent_us(programs) == pytest.approx(WAKING.launch_us + 3 * us - saved_us * (veus - 1), abs=1.0)


def test_two_are_not_taken_for_four_because_they_wake_nobody() -> None:
    """Two would save 50 us, less than a waking, and four 75."""
    (program,) = plan({"a": ""}, veus=4, cost=replace(WAKING, wake_us=60.0), a=[(1, 100.0), (2, 50.0), (4, 25.0)])
    assert (len(program.lanes), program.brief) == (4, False)


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

    def of_all(veus: int) -> tuple[RProgram, ...]:
        return schedule(graph, kernels, DEVICE, veus=veus, cost=replace(cost, wake_us=0.0))

    best = schedule(graph, kernels, DEVICE, veus=case.veus, cost=cost)
    brief = any(program.brief for program in best)
    assert priced_us(best, cost, brief=brief) <= spent_us(of_all(1)) + 1e-9
    several = [priced_us(of_all(veus), cost, brief=False) for veus in {2, 4, case.veus} if 1 < veus <= case.veus]
    assert lanes(best) == 1 or priced_us(best, cost, brief=False) <= min(several) + 1e-9
