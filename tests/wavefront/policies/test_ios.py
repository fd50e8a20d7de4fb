"""The dynamic program of IOS against exhaustive search, and its parts."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_rammer.wavefront import PolicyOptions, ProgramBuilder
from tvm_rammer.wavefront.policies.ios.blocks import blocks
from tvm_rammer.wavefront.policies.ios.endings import count_states, endings
from tvm_rammer.wavefront.policies.ios.ios import append_stage, ios
from tvm_rammer.wavefront.policies.ios.stage_graph import StageGraph
from tvm_rammer.wavefront.policies.ios.stage_latency import StageLatency
from tvm_rammer.wavefront.problem import Problem, make_problem

from ..graphs import BRANCHES, SYNC_COSTS, RandomCase, make_graph, make_kernels, random_cases

UNPRUNED = PolicyOptions(r=9, s=9)
DEFAULTS = PolicyOptions()


def problem_of(case: RandomCase, sync: str, options: PolicyOptions) -> Problem:
    graph, kernels = make_graph(case.reads, case.nbytes), make_kernels(**case.tilings)
    return replace(make_problem(graph, kernels, case.cost, case.veus, sync), options=options)


def all_partitions(left: frozenset[int], problem: Problem) -> Iterator[list[tuple[int, ...]]]:
    """Every way to take stages off the front."""
    if not left:
        yield []
    for size in range(1, len(left) + 1):
        for stage in combinations(sorted(left), size):
            if all(p in stage or p not in left for o in stage for p in problem.predecessors[o]):
                for rest in all_partitions(left.difference(stage), problem):
                    yield [stage, *rest]


def exhaustive_us(problem: Problem) -> float:
    found = []
    for partition in all_partitions(frozenset(range(len(problem.graph.operators))), problem):
        builder = ProgramBuilder(problem)
        for stage in partition:
            append_stage(stage, builder)
        found.append(builder.time_us)
    return min(found)


def ratio(case: RandomCase, sync: str, options: PolicyOptions = DEFAULTS) -> float:
    """How many times as long as the best of all partitions a plan of IOS takes."""
    problem = problem_of(case, sync, options)
    return sum(builder.time_us for builder in ios(problem)) / exhaustive_us(problem)


@pytest.mark.parametrize("sync", ["auto", "global"])
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(case=random_cases(most=5))
def test_small_graphs_are_planned_as_well_as_the_best_of_all_partitions(sync: str, case: RandomCase) -> None:
    assert ratio(case, sync) <= 1.02


@pytest.mark.slow
@pytest.mark.parametrize("sync", ["auto", "global"])
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(case=random_cases(most=6))
def test_so_are_graphs_of_six_operators(sync: str, case: RandomCase) -> None:
    assert ratio(case, sync) <= 1.02


@pytest.mark.parametrize("sync", ["auto", "global"])
def test_the_limits_of_the_paper_cost_less_than_two_per_cent_on_average(sync: str) -> None:
    ratios = []

    @settings(max_examples=80, deadline=None, derandomize=True, database=None)
    @given(random_cases(most=5))
    def collect(case: RandomCase) -> None:
        ratios.append(ratio(case, sync, PolicyOptions(r=3, s=8)))

    collect()
    assert len(ratios) >= 80
    assert statistics.mean(ratios) < 1.02


def test_groups_of_r_operators_and_stages_of_s_groups() -> None:
    reads = dict.fromkeys("abcd", "") | {"e": "a", "f": "e", "g": "f"}
    case = RandomCase(reads, {name: [(1, 1.0)] for name in reads}, {}, SYNC_COSTS, 8)
    (deep,) = ios(problem_of(case, "global", UNPRUNED))
    assert deep.barriers == 0
    (shallow,) = ios(problem_of(case, "global", PolicyOptions(r=3)))
    assert shallow.barriers == 1
    (narrow,) = ios(problem_of(case, "global", PolicyOptions(r=9, s=1)))
    assert narrow.barriers == 3


def bits(members: Sequence[int]) -> int:
    return sum(1 << o for o in members)


@st.composite
def successor_masks(draw: st.DrawFn) -> list[int]:
    n = draw(st.integers(1, 7))
    return [bits(sorted(draw(st.sets(st.integers(o + 1, n - 1), max_size=2)))) if o + 1 < n else 0 for o in range(n)]


def closed(members: int, within: int, successors: Sequence[int]) -> bool:
    return all(not after & within & ~members for o, after in enumerate(successors) if members >> o & 1)


def group_sizes(members: int, successors: Sequence[int]) -> list[int]:
    groups: list[int] = []
    for o, after in enumerate(successors):
        if members >> o & 1:
            mine = 1 << o | after & members
            touching = [g for g in groups if g & mine]
            groups = [g for g in groups if not g & mine] + [mine | _union(touching)]
    return [g.bit_count() for g in groups]


def _union(masks: Sequence[int]) -> int:
    united = 0
    for mask in masks:
        united |= mask
    return united


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(successor_masks(), st.integers(1, 4), st.integers(1, 4))
def test_endings_are_all_closed_sets_of_small_groups(successors: list[int], r: int, s: int) -> None:
    everything = (1 << len(successors)) - 1
    states = [everything & ~m for m in range(everything + 1) if closed(m, everything, successors)]
    assert count_states(successors, 200) == len(states)
    assert count_states(successors, len(states) - 1) == 0
    for state in states:
        found = list(endings(state, successors, r, s))
        assert len(found) == len(set(found))
        assert set(found) == {
            m
            for m in range(1, everything + 1)
            if not m & ~state and closed(m, state, successors)
            and max(group_sizes(m, successors)) <= r and len(group_sizes(m, successors)) <= s
        }  # fmt: skip


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(random_cases(), st.integers(1, 6))
def test_everything_passes_through_the_end_of_a_block(case: RandomCase, most: int) -> None:
    predecessors = make_graph(case.reads).predecessors()
    found = blocks(predecessors, most)
    assert [o for block in found for o in block] == list(range(len(predecessors)))
    for block in found[:-1]:
        for operator in range(block.stop, len(predecessors)):
            assert all(p >= block.stop - 1 for p in predecessors[operator])


def test_a_chain_is_cut_into_blocks_of_the_wanted_size() -> None:
    assert blocks([(), (0,), (1,), (2,), (3,)], 2) == [range(2), range(2, 4), range(4, 5)]
    assert blocks([], 2) == []


CHAIN = [0b010, 0b100, 0]


def test_stages_that_no_shortest_path_needs_are_not_timed() -> None:
    graph, timed = StageGraph(CHAIN, 3, 3, lambda ending: 5.0 if ending == 0b111 else 1.0), []

    def time_us(ending: int) -> float:
        timed.append(ending)
        return 1.5

    graph.time_stages(time_us, lambda: False)
    # Of three operators one after another: two stages beat three, and the bound of all in one is 5.
    assert 0b111 not in timed
    assert set(graph.best(2)) == {(0b001, 0b110), (0b011, 0b100)}


def test_enough_stages_are_timed_once_a_path_is_known() -> None:
    graph = StageGraph(CHAIN, 3, 3, lambda ending: 1.0)
    graph.time_stages(lambda ending: 9.0, lambda: True)
    assert graph.best(5) == [(0b111,)]


def test_the_best_lists_come_in_order() -> None:
    times = {0b001: 1.0, 0b010: 2.0, 0b100: 1.0, 0b011: 2.5, 0b110: 3.5, 0b111: 4.25}
    graph = StageGraph(CHAIN, 3, 3, lambda ending: 0.0)
    graph.time_stages(times.__getitem__, lambda: False)
    assert graph.best(9) == [(0b011, 0b100), (0b001, 0b010, 0b100), (0b111,), (0b001, 0b110)]
    assert graph.best(1) == [(0b011, 0b100)]


def test_equal_stages_are_planned_once() -> None:
    graph, kernels = make_graph(BRANCHES), make_kernels(a=(3, 1.0))
    same = replace(graph, operators=tuple(replace(op, function="f_a") for op in graph.operators))
    latency = StageLatency(make_problem(same, kernels, SYNC_COSTS, 2, "auto"))
    # b and d are both leaves of a; c and f depend on each other.
    assert latency([1, 3]) == latency([1, 2]) == latency([3, 2])
    assert latency.planned == 1
    assert latency([2, 5]) > latency([1, 3])
    assert latency.planned == 2


def test_a_wide_graph_is_planned_in_parts() -> None:
    case = RandomCase({f"o{n}": "" for n in range(40)}, {f"o{n}": [(2, 1.0)] for n in range(40)}, {}, SYNC_COSTS, 4)
    (program,) = case.plan("ios")
    assert len(program.kernels) == 40
