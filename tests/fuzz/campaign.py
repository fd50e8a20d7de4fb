"""Runs cases for some minutes in a few workers, shrinks what fails, and tells."""

import itertools
import pathlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnx

from .case import Case, ModelCase, Report
from .client import Client, Stopped
from .failures.classes import failure_class, signature
from .failures.reproduce import WAYS, write_test
from .failures.shrink import shrink
from .failures.summary import Found, Summary
from .kinds import ALL

SHRUNK_OF_A_SIGNATURE = 40
"""Wrong results and crashes look alike before they are shrunk; after so many no more are."""


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    kinds : sequence of str
    seed : int
        Case number i has the seed `seed * 1_000_000 + i`.
    seconds : float
        When no new case is started.
    cases : int, optional
        Or after so many.
    out : path
        Where test files go.
    jobs : int
        Workers at a time.
    shrink_seconds : float
        For each failure.
    """

    kinds: Sequence[str]
    seed: int
    seconds: float
    out: pathlib.Path
    jobs: int = 2
    cases: int | None = None
    shrink_seconds: float = 60.0
    limits: dict[str, float] | None = None


class Campaign:
    """A run of the fuzzer; `run` returns what it found, also after Ctrl-C."""

    def __init__(self, plan: Plan, say: object = print) -> None:
        self.plan, self.say = plan, say
        self.summary = Summary()
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._seen: dict[tuple[str, ...], list[str]] = {}
        self._end = time.monotonic() + plan.seconds

    def run(self) -> Summary:
        """Run until the time is over or someone presses Ctrl-C; no worker is left."""
        cases = self._cases()
        with ThreadPoolExecutor(self.plan.jobs) as pool:
            jobs = [pool.submit(self._job, cases) for _ in range(self.plan.jobs)]
            try:
                for job in jobs:
                    job.result()
            except KeyboardInterrupt:
                self.say("stopped")  # type: ignore[operator]
            finally:
                self._stop.set()
        return self.summary

    def _cases(self) -> Iterator[tuple[str, int]]:
        for i in itertools.count() if self.plan.cases is None else range(self.plan.cases):
            yield self.plan.kinds[i % len(self.plan.kinds)], self.plan.seed * 1_000_000 + i

    def _job(self, cases: Iterator[tuple[str, int]]) -> None:
        with Client(self._stop, self.plan.limits) as client:
            while time.monotonic() < self._end and not self._stop.is_set():
                with self._lock:
                    case = next(cases, None)
                if case is None:
                    return
                try:
                    self._one(client, *case)
                except Stopped:
                    return

    def _one(self, client: Client, kind: str, seed: int) -> None:
        report = client.run((kind, seed))
        with self._lock:
            self.summary.count(kind, seed, report)
        if not report.failed:
            return
        # An error's class is known before it is shrunk; a wrong result's is not.
        sign = signature(report)
        with self._lock:
            known = self._seen.setdefault(sign, [])
            if known and (report.outcome == "foreign" or len(known) >= SHRUNK_OF_A_SIGNATURE):
                self.summary.found[known[0]].count += 1
                return
        case = ALL[kind](seed)
        case, report = shrink(client, case, report, self.plan.shrink_seconds)
        self._tell(case, report, sign, wanted(case) if report.outcome == "wrong" else None)

    def _tell(self, case: Case, report: Report, sign: tuple[str, ...], want: list[np.ndarray] | None) -> None:
        line = failure_class(case, report)
        with self._lock:
            self._seen[sign].append(line)
            if line in self.summary.found:
                self.summary.found[line].count += 1
                return
            path = write_test(self.plan.out, case, report, want)
            self.summary.found[line] = Found(line, str(path), case.kind, case.seed)
        self.say(f"{line}\n    {' '.join(report.detail.split())[:200]}\n    {path}")  # type: ignore[operator]


def wanted(case: Case) -> list[np.ndarray] | None:
    """What the judges say of a model that was judged already, so that they are known to survive it."""
    if not isinstance(case, ModelCase) or case.kind in WAYS:
        return None
    from .judge.onnx_judges import by_onnxruntime

    return by_onnxruntime(onnx.load_from_string(case.data), case.feeds)
