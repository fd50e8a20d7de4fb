"""Thousands of illegal plans, none accepted; and plans of all policies, all right."""

import collections
import random

import pytest

from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import RProgram
from tvm_rammer.wavefront import POLICIES, CostModel, schedule, verify

from ..graphs import DEVICE, FREE, SYNC_COSTS
from ..judge import in_a_late_run, is_right
from ..policies.all_states import is_right_in_all_states
from ..tiled_graphs import tiled_graph, tiled_graph_with_copies
from .mutants import MUTATIONS, VIEW_MUTATIONS

QUICK = ("wavefront", "sequential")
SYNCS = ("auto", "auto", "global")
COSTS = (FREE, SYNC_COSTS, CostModel(launch_us=0.5, signal_us=1.0, wait_us=0.1))


def random_programs(seed: int, most: int, veus: int, policies=QUICK) -> tuple[RProgram, ...]:
    """Plans of a random tiled graph, verified by `schedule`."""
    rng = random.Random(seed)
    graph, kernels = tiled_graph(rng, rng.randint(1, most))
    return schedule(
        graph, kernels, DEVICE,
        veus=rng.randint(1, veus), policy=rng.choice(policies), sync=rng.choice(SYNCS), cost=rng.choice(COSTS),
    )  # fmt: skip


def is_accepted(program: RProgram) -> bool:
    try:
        verify(program)
    except VerificationError:
        return False
    return True


def count_verdicts(seeds: range, each: int, most: int, veus: int) -> dict[str, collections.Counter[str]]:
    """By mutation: how many mutants were illegal and refused, legal and accepted, or legal and refused all the same."""
    verdicts: dict[str, collections.Counter[str]] = {m.__name__: collections.Counter() for m in MUTATIONS}
    for seed in seeds:
        rng = random.Random(seed)
        for program in random_programs(seed, most, veus):
            for mutate in MUTATIONS:
                for mutant in filter(None, (mutate(program, rng) for _ in range(each))):
                    accepted, right = is_accepted(mutant), is_right(mutant)
                    assert right or not accepted, (seed, mutate.__name__, mutant)
                    verdict = "illegal" if not right else "legal, accepted" if accepted else "legal, refused"
                    verdicts[mutate.__name__][verdict] += 1
    return verdicts


def programs_with_views(seed: int, most: int, veus: int) -> tuple[RProgram, ...]:
    """Plans of a random graph that lost copies."""
    rng = random.Random(seed)
    graph, kernels, copies = tiled_graph_with_copies(rng, rng.randint(2, most))
    return schedule(
        graph, kernels, DEVICE, veus=rng.randint(1, veus), sync=rng.choice(SYNCS), cost=rng.choice(COSTS), copies=copies
    )


def count_verdicts_with_views(seeds: range, each: int, most: int, veus: int) -> dict[str, collections.Counter[str]]:
    """As `count_verdicts`, of plans with views; that these are right themselves is asserted."""
    verdicts: dict[str, collections.Counter[str]] = {
        m.__name__: collections.Counter() for m in (*MUTATIONS, *VIEW_MUTATIONS)
    }
    for seed in seeds:
        rng = random.Random(seed)
        for program in programs_with_views(seed, most, veus):
            assert is_right(program), (seed, program)
            if not any(b.place for b in program.graph.buffers):
                continue
            for mutate in (*MUTATIONS, *VIEW_MUTATIONS):
                for mutant in filter(None, (mutate(program, rng) for _ in range(each))):
                    accepted, right = is_accepted(mutant), is_right_with_views(mutant)
                    assert right or not accepted, (seed, mutate.__name__, mutant)
                    verdicts[mutate.__name__]["illegal" if not right else "accepted" if accepted else "refused"] += 1
    return verdicts


def is_right_with_views(program: RProgram) -> bool:
    """Whether a program is right; a view that leaves its buffer is wrong, whoever reads what."""
    buffers = program.graph.buffers
    within = all(0 <= b.place.offset <= buffers[b.place.base].nbytes - b.nbytes for b in buffers if b.place is not None)
    return within and is_right(program)


def test_no_mutant_of_a_plan_with_views_is_accepted() -> None:
    verdicts = count_verdicts_with_views(range(60), 1, 8, 4)
    assert sum(v["illegal"] for v in verdicts.values()) > 100
    assert all(verdicts[m.__name__]["illegal"] >= 10 for m in VIEW_MUTATIONS)


@pytest.mark.slow
def test_none_of_thousands_of_illegal_mutants_of_plans_with_views_is_accepted() -> None:
    verdicts = count_verdicts_with_views(range(5000, 5400), 2, 14, 6)
    assert sum(v["illegal"] for v in verdicts.values()) >= 3000
    assert all(v["illegal"] >= 20 for v in verdicts.values())


def test_no_mutant_is_accepted() -> None:
    verdicts = count_verdicts(range(40), 1, 8, 4)
    assert sum(v["illegal"] for v in verdicts.values()) > 100


@pytest.mark.slow
def test_none_of_ten_thousand_illegal_mutants_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = count_verdicts(range(1000, 1900), 2, 14, 6)
    assert sum(v["illegal"] for v in verdicts.values()) >= 10_000
    assert all(v["illegal"] >= 50 for v in verdicts.values())
    with capsys.disabled():
        for name, counts in verdicts.items():
            print(f"\n{name:<20}", dict(sorted(counts.items())), end="")


@pytest.mark.slow
def test_no_mutant_of_a_larger_plan_is_accepted() -> None:
    verdicts = count_verdicts(range(3000, 3040), 1, 40, 24)
    assert sum(v["illegal"] for v in verdicts.values()) >= 300


def test_the_judge_agrees_with_a_walk_through_all_states() -> None:
    """Tiny programs, right and wrong: each state that can be reached is looked at."""
    verdicts = collections.Counter()
    for seed in range(300):
        rng = random.Random(seed)
        for program in random_programs(seed, 3, 3):
            for mutate in (*MUTATIONS, lambda program, rng: program):
                mutant = mutate(program, rng)
                if mutant and sum(map(len, mutant.lanes)) <= 12:
                    want = is_right_in_all_states(mutant) and is_right_in_all_states(in_a_late_run(mutant))
                    assert is_right(mutant) == want, (seed, mutant)
                    verdicts[want] += 1
    assert min(verdicts[True], verdicts[False]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_plans_of_every_policy_are_right(policy: str) -> None:
    """`schedule` verifies each plan; the judge, which is slower, looks at the smaller ones again."""
    for seed in range(40 if policy in QUICK else 10):
        rng = random.Random(seed)
        graph, kernels = tiled_graph(rng, rng.randint(1, 60 if policy in QUICK else 12))
        for veus in (1, rng.randint(2, 8), rng.randint(9, 132)):
            for sync in ("auto", "global"):
                cost = rng.choice(COSTS)
                programs = schedule(graph, kernels, DEVICE, veus=veus, policy=policy, sync=sync, cost=cost)
                if len(graph.operators) <= 20 and veus <= 8:
                    assert all(is_right(program) for program in programs)
