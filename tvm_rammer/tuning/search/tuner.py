"""The tuner: proposes, measures, logs, learns, until every function has had its trials."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...device import DeviceSpec
from ..log.writer import LogWriter
from ..measure.bench import Bench
from ..tasks import Task
from ..trial import Outcome, Trial
from .budget import share_trials
from .progress import Progress
from .search import LearnedCostModel, Search

BATCH, PER_FUNCTION = 32, 8
"""Trials that are built together, and those of one function among them."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a run of the tuner did.

    Parameters
    ----------
    functions, trials, failed : int
        Of this run.
    known : int
        Trials that the log had before.
    folder : str
        The log.
    """

    functions: int
    trials: int
    failed: int
    known: int
    folder: str


def tune(
    tasks: Sequence[Task],
    device: DeviceSpec,
    bench: Bench,
    logs: str | os.PathLike[str],
    *,
    trials: int,
    seed: int = 0,
) -> Tuned:
    """Tune functions; trials that the log has already count.

    Parameters
    ----------
    tasks : sequence of Task
        By falling total time.
    device : DeviceSpec
    bench : Bench
    logs : path
        Where the log is, or will be.
    trials : int
        Over all functions.
    seed : int

    Raises
    ------
    TuningLogError
        The log cannot be written.
    """
    with LogWriter(logs, device) as log:
        model = LearnedCostModel()
        quotas = dict(zip((t.function.key for t in tasks), share_trials(tasks, trials), strict=True))
        searches = [Search(task, seed) for task in tasks]
        known = {s.task.function.key: s.restore(log.tried(s.task.function)) for s in searches}
        lacked = {key: max(0, quota - len(known[key][0])) for key, quota in quotas.items()}
        left = dict(lacked)
        with Progress(sys.stderr, quotas, {key: len(old) for key, (old, _) in known.items()}) as progress:
            for old, outcomes in known.values():
                for trial, outcome in zip(old, outcomes, strict=True):
                    progress.known(trial, outcome)
                if old and left[old[0].task.function.key]:
                    model.update(old[0].task, old, outcomes)
            before = progress.done
            while batch := _next_batch(searches, left, lacked, model, log, progress):
                _measure(batch, bench, log, model, progress)
        functions = sum(quota > 0 for quota in quotas.values())
        return Tuned(functions, progress.done - before, progress.failed, before, str(log.folder))


def first_trials(
    tasks: Sequence[Task], device: DeviceSpec, logs: str | os.PathLike[str], *, trials: int, seed: int = 0
) -> list[Trial]:
    """Choose trials without any measurement: what `tune` would begin with, as far as the log does not have it."""
    model = LearnedCostModel()
    found = []
    with LogWriter(logs, device) as log:
        for task, quota in zip(tasks, share_trials(tasks, trials), strict=True):
            search = Search(task, seed)
            known, _ = search.restore(log.tried(task.function))
            found += search.propose(max(0, quota - len(known)), model)
    return found


def _next_batch(
    searches: Sequence[Search],
    left: dict[str, int],
    lacked: Mapping[str, int],
    model: LearnedCostModel,
    log: LogWriter,
    progress: Progress,
) -> list[Trial]:
    """Some trials of some functions, claimed from other tuners; what these took counts as tried.

    Tuners that started at different times propose different tilings, so their sum is bounded by `lacked`: what each
    function lacked when this tuner started.
    """
    batch: list[Trial] = []
    for search in searches:
        key = search.task.function.key
        wanted = min(left[key], PER_FUNCTION, BATCH - len(batch))
        if not wanted:
            continue
        proposed = search.propose(wanted, model)
        left[key] -= len(proposed)
        if len(proposed) < wanted:
            progress.skip(key, left[key])
            left[key] = 0
        batch += proposed
    claimed = log.claim(batch, lacked)
    mine = {id(trial) for trial in claimed}
    for trial in batch:
        if id(trial) not in mine:
            progress.skip(trial.task.function.key, 1)
    return claimed or (_next_batch(searches, left, lacked, model, log, progress) if batch else [])


def _measure(batch: Sequence[Trial], bench: Bench, log: LogWriter, model: LearnedCostModel, progress: Progress) -> None:
    done: dict[str, list[tuple[Trial, Outcome]]] = {}
    for trial, outcome in bench.measure(batch):
        log.add(trial, outcome)
        progress.add(trial, outcome)
        done.setdefault(trial.task.function.key, []).append((trial, outcome))
    for pairs in done.values():
        model.update(pairs[0][0].task, [t for t, _ in pairs], [o for _, o in pairs])
