"""Cases in child processes that have limits of time and memory."""

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from .cases import CRASH, HANG, Verdict, judge, load_cases, operator_of
from .hostile import judge_hostile

LIMIT_S = 60.0
"""A case that takes longer hangs; one with hostile values, if it takes so long with one of them."""

LIMIT_BYTES = 6 << 30
"""Of a child's address space; what LLVM and TVM map takes about two gigabytes."""

CASES_EACH = 200
"""A child is replaced after so many: compiled modules stay in memory."""


def run_cases(
    names: Sequence[str], processes: int, told: Callable[[Verdict], None] = lambda _: None, hostile: bool = False
) -> list[Verdict]:
    """Run cases in child processes.

    Parameters
    ----------
    names : sequence of str
        Of `load_cases`.
    processes : int
        At a time.
    told : callable
        Gets each verdict as it comes.
    hostile : bool
        Whether to run them with values that nobody expects.

    Returns
    -------
    list of Verdict
        In the order of the names.
    """
    load_cases()  # once, before the children are forked
    todo, verdicts = list(reversed(names)), {}
    workers = [_Worker(hostile) for _ in range(processes)]
    try:
        for worker in workers:
            worker.give(todo)
        while any(worker.case for worker in workers):
            ready = wait([worker.pipe for worker in workers if worker.case], timeout=1.0)
            for number, worker in enumerate(workers):
                verdict = worker.verdict(worker.pipe in ready) if worker.case else None
                if verdict is None:
                    continue
                verdicts[verdict.name] = verdict
                told(verdict)
                if not worker.fit:
                    worker.end()
                    workers[number] = worker = _Worker(hostile)
                worker.give(todo)
    finally:
        for worker in workers:
            worker.end()
    return [verdicts[name] for name in names]


class _Worker:
    """A child process, and the case that it works on."""

    def __init__(self, hostile: bool) -> None:
        context = multiprocessing.get_context("fork")  # no thread runs yet: the pool starts at the first launch
        self.pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, hostile), daemon=True)
        self._process.start()
        far.close()
        self.case, self.fit = "", True
        self._began, self._moved, self._done = 0.0, 0.0, 0
        self._at = ""

    def give(self, todo: list[str]) -> None:
        """Hand over the next case, if there is one."""
        if todo:
            self.case, self._at = todo.pop(), ""
            self._began = self._moved = time.monotonic()
            self.pipe.send(self.case)

    def verdict(self, ready: bool) -> Verdict | None:
        """What became of the case; None while it runs. After a crash or a hang the worker is no longer fit."""
        now = time.monotonic()
        if not ready and now - self._moved < LIMIT_S:
            return None
        try:
            told: Verdict | str | None = self.pipe.recv() if ready else None
        except (EOFError, OSError):
            self._process.join(5)
            told = self._bad(CRASH, f"the process ended with {self._process.exitcode}")
        else:
            if isinstance(told, str):
                self._at, self._moved = told, now
                return None
            told = told or self._bad(HANG, f"no result after {LIMIT_S:.0f} s")
        self.case = ""
        self._done += 1
        self.fit = told.outcome not in (CRASH, HANG) and self._done < CASES_EACH
        return replace(told, seconds=now - self._began)

    def _bad(self, outcome: str, message: str) -> Verdict:
        operator = operator_of(self.case, load_cases()[self.case])
        return Verdict(self.case, operator, outcome, f"{self._at}: {message}" if self._at else message)

    def end(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, hostile: bool) -> None:
    """Judge the cases that come through a pipe until it is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):  # TVM and LLVM write there whatever Python says
        with contextlib.suppress(OSError, ValueError):
            os.dup2(silent, stream.fileno())
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    cases = load_cases()
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        pipe.send(judge_hostile(name, cases[name], pipe.send) if hostile else judge(name, cases[name]))


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGKILL)
