"""Wrong texts and wrong tables: each goes wrong in some run, or is shown to be no wrong at all.

With the slow cases 792 wrong texts and 2,340 wrong tables (`pytest -s` prints them by kind and verdict). 110 texts are
equivalent: looks ahead that no row asks for, and barriers left out where another one does the same work, or that order
nothing: shown by the text around them and the rows that take them, or by leaving out both. 6 tables are those of
another legal plan.
"""

import collections
from dataclasses import replace

import numpy as np
import pytest

from tests.emulation.emulate import EmulationError
from tests.emulation.programs import Built
from tests.persistent_codegen.cuda.programs import BY_COLUMNS, GRAPHS, SHARED, inputs_of, planned, relay, tiny
from tests.persistent_codegen.cuda.read_rows import ContradictionError, decoded
from tvm_rammer.errors import VerificationError
from tvm_rammer.wavefront import verify

from . import table_mutants, text_mutants
from .harmless import most_rtasks_of_a_run, needs_nothing_before, reads_late, rows_follow_waits

QUICK = [("tiny", 2, None), ("relay", 2, None), ("two_matmuls", 3, BY_COLUMNS), ("alike", 3, SHARED)]
ALL = [*QUICK, *((name, veus, None) for name in GRAPHS for veus in (3, 8)), ("two_matmuls", 8, BY_COLUMNS)]
SEEDS, RUNS = 24, 2
"""Runs of a mutant: so many orders, each with a second run on the same counters."""

slow = pytest.mark.slow
CASES = [pytest.param(case, marks=() if case in QUICK else slow, id="-".join(map(str, case))) for case in ALL]


def programs_of(case) -> list[tuple[Built, dict[str, np.ndarray]]]:
    """Each program of a case with its inputs."""
    name, veus, choice = case
    if name in ("tiny", "relay"):
        return [(tiny() if name == "tiny" else relay(), {"x": np.linspace(-1, 0.5, 512, dtype="float32")})]
    # Large ones: the result of a softmax does not depend on the maximum unless it overflows without.
    known = {f"x{i}": a * (20 if name == "softmax" else 1) for i, a in enumerate(inputs_of(name))}
    found = []
    for built in planned(name, veus, choice):
        found.append((built, dict(known)))
        known |= fresh(built).run(known, seed=1)
    return found


def fresh(built: Built) -> Built:
    return replace(built, state=built.cuda.constants[-1].copy())


def how_it_fails(built: Built, inputs, want, *, source=None, mutants=(), seeds=SEEDS) -> str | None:
    """What some run shows: an error of the emulation, or another result; None if all are right."""
    for seed in range(seeds):
        started = fresh(built)
        for _ in range(RUNS):
            try:
                got = started.run(inputs, seed, source, mutants)
            except EmulationError as error:
                return str(error).split(":")[0]
            if any(not np.allclose(got[name], value, rtol=1e-3, atol=1e-6) for name, value in want.items()):
                return "wrong result"
    return None


AT_START = (
    "equivalent: the first thing that an rTask does, right after a barrier of its block or of the rTask before it"
)
FOR_THREAD_0 = "equivalent: it orders nothing but accesses of thread 0"
BETWEEN_RTASKS = "equivalent: the barrier between two rTasks of one run, where no run of its operator has two"
NOTHING_BEFORE = "equivalent: rTasks that wait for nothing, and share nothing with those before them in the lane"
READS_LATE = "equivalent: all that an rTask reads of others comes behind a barrier of its own"
NEVER_ASKED = "equivalent: no two rows that wait follow one another"
FIRST_WARP = "equivalent: only the warp that waits reads what it waits for; where another waits, it is wrong"
EITHER = "equivalent: one of two barriers, either of which is enough"


def verdicts_on_text(case) -> collections.Counter[tuple[str, str]]:
    """How often each kind of text mutant ended how."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for built, inputs in programs_of(case):
        source, mutants = text_mutants.mutants_of(built)
        want = fresh(built).run(inputs, seed=1)
        assert how_it_fails(built, inputs, want, source=source, seeds=6) is None

        def failure(*chosen, built=built, inputs=inputs, want=want, source=source):
            return how_it_fails(built, inputs, want, source=source, mutants=[m.number for m in chosen])

        other = text_mutants.last_warp_waits(source)

        def needed_by_others(mutant, failure=failure, other=other):
            return failure(source=other) is None and failure(mutant, source=other) is not None

        verdicts = {mutant: failure(mutant) for mutant in mutants}
        barriers = [m for m in mutants if m.kind.endswith("left out") and verdicts[m] is None]
        for mutant, verdict in verdicts.items():
            if verdict is None and mutant.after and most_rtasks_of_a_run(built, mutant.after) == 1:
                verdict = BETWEEN_RTASKS
            if verdict is None and mutant.branch >= 0 and needs_nothing_before(built, mutant.branch):
                verdict = NOTHING_BEFORE
            if verdict is None and mutant.branch >= 0 and reads_late(built, mutant.branch):
                verdict = READS_LATE
            if verdict is None and mutant in barriers:
                if mutant.at_start:
                    verdict = AT_START
                elif mutant.for_thread_0:
                    verdict = FOR_THREAD_0
                elif any(failure(mutant, other) for other in barriers if other != mutant):
                    verdict = EITHER
                elif needed_by_others(mutant):
                    verdict = FIRST_WARP
            if verdict is None and mutant.kind in text_mutants.ASKED and not rows_follow_waits(built.program):
                verdict = NEVER_ASKED
            assert verdict, (case, mutant)
            found[mutant.kind, verdict] += 1
    return found


def verdicts_on_tables(case, seeds: int) -> collections.Counter[tuple[str, str]]:
    """How often each kind of table mutant ended how; a legal one must run right."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for built, inputs in programs_of(case):
        want = fresh(built).run(inputs, seed=1)
        for mutant in table_mutants.mutants_of(built):
            legal = is_legal(mutant.built)
            failure = how_it_fails(mutant.built, inputs, want, seeds=seeds)
            assert failure is None or not legal, (case, mutant.kind, mutant.what, failure)
            verdict = "equivalent: a legal plan" if legal else failure or "refused by the verifier alone"
            found[mutant.kind, verdict] += 1
    return found


def is_legal(built: Built) -> bool:
    try:
        verify(decoded(built))
    except (ContradictionError, VerificationError):
        return False
    return True


@pytest.mark.parametrize("case", CASES)
def test_tables_say_what_the_plan_says(case):
    for built, _ in programs_of(case):
        assert decoded(built).lanes == built.program.lanes


@pytest.mark.parametrize("case", CASES)
def test_every_wrong_text_is_caught(case):
    verdicts = verdicts_on_text(case)
    kinds = {kind for kind, _ in verdicts}
    assert {"release -> relaxed", "acquire -> relaxed", "scope of the device -> of the block"} <= kinds
    show(verdicts)


@pytest.mark.parametrize("case", CASES)
def test_every_wrong_table_is_caught(case):
    verdicts = verdicts_on_tables(case, seeds=3)
    equivalent = sum(n for (_, verdict), n in verdicts.items() if verdict.startswith("equivalent"))
    assert equivalent <= 0.05 * sum(verdicts.values())
    show(verdicts)


def show(verdicts: collections.Counter[tuple[str, str]]) -> None:
    """Print how many mutants of each kind ended how, for `pytest -s`."""
    for (kind, verdict), count in sorted(verdicts.items()):
        print(f"{kind:<40} {verdict:<60} {count}")
    print(f"{'all':<101} {sum(verdicts.values())}")
