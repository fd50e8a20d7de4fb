"""The parent's side of a worker: requests with time limits, restarts, what crashed."""

import contextlib
import json
import os
import pathlib
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from .case import Case, ModelCase, Report, save

ROOT = pathlib.Path(__file__).parents[2]
CASES_A_WORKER = 50
LIMITS = {"ready": 180.0, "generate": 30.0, "judge": 20.0, "compile": 60.0, "run": 30.0, "compare": 30.0}
"""Seconds for each stage."""


class Stopped(Exception):
    """Someone asked for the end."""


class Client:
    """Runs cases in a worker of its own.

    Parameters
    ----------
    stop : threading.Event
        Ends a request with `Stopped`.
    limits : mapping of str to float, optional
        Other limits than `LIMITS`, in seconds.
    """

    def __init__(self, stop: threading.Event, limits: dict[str, float] | None = None) -> None:
        self._stop, self._limits = stop, LIMITS | (limits or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz")
        self._served, self._buffer = 0, b""
        self.restarts = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._folder.cleanup()

    def run(self, case: Case | tuple[str, int], judges: bool = True) -> Report:
        """Run a case, or the one of a kind and a seed."""
        report = self._ask({**self._request(case), "judges": judges})
        assert isinstance(report, Report)
        if report.failed and report.where in ("judge", "generate"):
            # A judge died. What the compiler makes of the case is asked for by itself.
            if not judges:
                return Report("skipped", f"{report.outcome} in stage {report.where!r}")
            without = self.run(case, judges=False)
            return (
                without
                if without.failed or without.outcome == "refused"
                else Report("skipped", f"judge: {report.outcome}")
            )
        return report

    def values(self, case: ModelCase) -> dict[str, Any]:
        """What the tensors of a model are, by onnx's reference evaluator; nothing if it cannot tell."""
        to = pathlib.Path(self._folder.name, "values")
        to.unlink(missing_ok=True)
        self._ask({**self._request(case), "task": "values", "to": str(to)})
        return dict(pickle.loads(to.read_bytes())) if to.exists() else {}

    def end(self) -> None:
        """Kill the worker and all that it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process, self._buffer = None, b""

    def _request(self, case: Case | tuple[str, int]) -> dict[str, Any]:
        if isinstance(case, tuple):
            return {"kind": case[0], "seed": case[1]}
        path = pathlib.Path(self._folder.name, "case")
        save(case, path)
        return {"path": str(path)}

    def _ask(self, request: dict[str, Any]) -> Report | bool:
        if self._served >= CASES_A_WORKER:
            self.end()
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        self._served += 1
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._listen("generate")

    def _listen(self, stage: str, until: str = "") -> Report | bool:
        """Read answers until there is a result; a stage that takes too long, or is the last, makes a report."""
        while True:
            line = self._line(self._limits[stage])
            if isinstance(line, Report):
                return Report(line.outcome, line.detail, stage)
            answer = json.loads(line)
            if "report" in answer:
                return Report(*answer["report"])
            if "done" in answer:
                return bool(answer["done"])
            stage = answer["stage"]
            if stage == until:
                return True

    def _line(self, limit: float) -> bytes | Report:
        assert self._process is not None and self._process.stdout is not None
        pipe, deadline = self._process.stdout, time.monotonic() + limit
        while b"\n" not in self._buffer:
            if self._stop.is_set():
                self.end()
                raise Stopped
            if time.monotonic() > deadline:
                self.end()
                return Report("hang", f"more than {limit:.0f} s")
            if select.select([pipe], [], [], 0.2)[0]:
                data = os.read(pipe.fileno(), 1 << 16)
                if not data:
                    return self._died()
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _died(self) -> Report:
        assert self._process is not None
        code = self._process.wait()
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        said = [s.strip() for s in self._said().splitlines() if s.strip() and not s.startswith(("#", "  "))]
        self.end()
        return Report("crash", f"{name} {said[-1][:200] if said else ''}".strip())

    def _start(self) -> None:
        self.restarts += 1
        self._served = 0
        with pathlib.Path(self._folder.name, "said").open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for the parent
            )
        started = self._listen("ready", until="ready")
        if isinstance(started, Report):
            self.end()
            raise RuntimeError(f"a worker does not start: {started.detail}\n{self._said()[-2000:]}")

    def _said(self) -> str:
        return pathlib.Path(self._folder.name, "said").read_bytes()[-20_000:].decode(errors="replace")
