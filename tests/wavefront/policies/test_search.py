"""Local search, and what holds for all policies together."""

from dataclasses import replace
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings

from tvm_rammer.errors import ScheduleError
from tvm_rammer.wavefront import (
    POLICIES,
    SYNCS,
    CostModel,
    PolicyOptions,
    ProgramBuilder,
    lower_bound,
    schedule,
    verify,
)
from tvm_rammer.wavefront.plan.append_operator import append_operator
from tvm_rammer.wavefront.policies.replay import Replay, Step
from tvm_rammer.wavefront.policies.search import _Moves
from tvm_rammer.wavefront.problem import Problem, make_problem

from ..graphs import BRANCHES, COSTS, DEVICE, FREE, SYNC_COSTS, RandomCase, make_graph, make_kernels, random_cases
from ..tiled_graphs import tiled_graph, tiled_graph_with_copies

SHORT = PolicyOptions(budget=15)


def makespan(case: RandomCase, policy: str, sync: str = "auto", options: PolicyOptions = SHORT) -> float:
    return sum(program.makespan_us for program in case.plan(policy, sync, options))


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(case=random_cases())
def test_every_policy_plans_each_operator_once_and_none_beats_the_bound_or_the_search(
    sync: str, case: RandomCase
) -> None:
    bound, found = case.lower_bound(), {}
    for policy in POLICIES:
        programs = case.plan(policy, sync, SHORT)
        for program in programs:
            verify(program, device=DEVICE)
        assert sorted(op.name for program in programs for op in program.graph.operators) == sorted(case.reads)
        found[policy] = sum(program.makespan_us for program in programs)
        assert found[policy] >= bound.best_us * (1 - 1e-9)
    assert found["search"] <= min(found.values()) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_neither_does_where_rtasks_depend_on_parts(seed: int) -> None:
    rng = Random(seed)
    graph, kernels = tiled_graph(rng, rng.randint(1, 12))
    veus, cost = rng.randint(1, 9), rng.choice(COSTS)
    bound = lower_bound(graph, kernels, DEVICE, veus=veus, cost=cost)
    for policy in POLICIES:
        programs = schedule(graph, kernels, DEVICE, veus=veus, policy=policy, cost=cost, options=SHORT)
        assert sum(program.makespan_us for program in programs) >= bound.best_us * (1 - 1e-9), policy


@pytest.mark.parametrize("seed", range(25))
def test_neither_does_where_rtasks_read_parts_that_others_write(seed: int) -> None:
    rng = Random(seed)
    graph, kernels, copies = tiled_graph_with_copies(rng, rng.randint(4, 12))
    veus, cost = rng.randint(1, 9), rng.choice(COSTS)
    for policy in POLICIES:
        programs = schedule(graph, kernels, DEVICE, veus=veus, policy=policy, cost=cost, options=SHORT, copies=copies)
        if len(programs) == 1:
            bound = lower_bound(programs[0].graph, kernels, DEVICE, veus=veus, cost=cost)
            assert bound.gap(programs) >= -1e-9, policy


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(case=random_cases(most=8))
def test_the_search_is_best_too_where_rtasks_share_bandwidth(case: RandomCase) -> None:
    shared = replace(case, cost=replace(case.cost, shared_gbps=0.5))
    assert makespan(shared, "search") <= min(makespan(shared, policy) for policy in POLICIES) * (1 + 1e-9)


def test_the_search_mends_what_the_others_miss() -> None:
    reads = {"a": "", "b": "", "c": "", "d": "", "e": "a"}
    tilings = {"a": [(1, 1.0)], "b": [(1, 2.0)], "c": [(3, 2.0)], "d": [(3, 3.0), (3, 2.0)], "e": [(3, 2.0), (1, 3.0)]}
    case = RandomCase(reads, tilings, {}, FREE, 3)
    others = min(makespan(case, policy) for policy in POLICIES if policy != "search")
    assert makespan(case, "search", options=PolicyOptions(budget=0)) == others == 7
    assert makespan(case, "search", options=PolicyOptions(budget=100)) == case.lower_bound().best_us == 6


def test_plans_depend_on_the_seed_alone() -> None:
    case = RandomCase(BRANCHES, {n: [(1 + i % 4, 1.5), (1, 4.0)] for i, n in enumerate(BRANCHES)}, {}, SYNC_COSTS, 3)
    first, second = (case.plan("search", options=PolicyOptions(seed=7)) for _ in range(2))
    assert first == second


def test_the_search_stops_when_its_time_is_up() -> None:
    case = RandomCase(BRANCHES, {name: [(2, 1.0), (1, 2.0)] for name in BRANCHES}, {}, SYNC_COSTS, 3)
    ticks = count()
    case.plan("search", options=PolicyOptions(budget=10**9, seconds=20, clock=lambda: float(next(ticks))))
    assert next(ticks) < 30


def test_options_are_checked() -> None:
    with pytest.raises(ScheduleError, match="seconds is 1, without a clock"):
        PolicyOptions(seconds=1)
    with pytest.raises(ScheduleError, match="r is 0"):
        PolicyOptions(r=0)
    with pytest.raises(ScheduleError, match="budget is -1"):
        PolicyOptions(budget=-1)


def problem_of(case: RandomCase, sync: str = "auto") -> Problem:
    return make_problem(make_graph(case.reads), make_kernels(**case.tilings), case.cost, case.veus, sync)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(random_cases())
def test_changed_plans_are_legal_and_replayed_as_if_planned_afresh(case: RandomCase) -> None:
    problem = problem_of(case)
    moves, replay = _Moves(problem), Replay(ProgramBuilder(problem))
    steps = [Step(o, Random(o).choice(problem.candidates(o))) for o in range(len(case.reads))]
    for _ in range(8):
        steps = moves.draw(steps)
        position = {step.operator: n for n, step in enumerate(steps)}
        assert len(position) == len(steps) == len(case.reads)
        assert all(position[p] < position[o] for o in position for p in problem.predecessors[o])
        afresh = ProgramBuilder(problem)
        for step in steps:
            if step.barrier:
                afresh.barrier()
            append_operator(step.operator, step.kernel, afresh)
        assert replay.time_us(steps) == afresh.time_us
        assert replay.builder.finish() == afresh.finish()


@pytest.mark.parametrize("cost", COSTS)
def test_with_global_sync_a_changed_plan_has_its_barriers_where_they_are_needed(cost: CostModel) -> None:
    case = RandomCase(BRANCHES, {name: [(2, 1.0), (1, 2.0)] for name in BRANCHES}, {}, cost, 3)
    moves = _Moves(problem_of(case, "global"))
    steps = [Step(o, moves.problem.candidates(o)[0]) for o in range(len(BRANCHES))]
    for _ in range(50):
        steps = moves.draw(steps)
        since: set[int] = set()
        for step in steps:
            since = set() if step.barrier else since
            assert since.isdisjoint(moves.problem.predecessors[step.operator])
            since.add(step.operator)


def test_nothing_to_search() -> None:
    assert RandomCase({}, {}, {}, FREE, 2).plan("search") == ()
