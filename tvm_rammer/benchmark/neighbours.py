"""Engines beside busy processes: each engine alone in a process of its own, with neighbours that never sleep."""

import contextlib
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from ..errors import ModelError
from .quota import joining, quota_group
from .race import relative_error

BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
"""A process that never sleeps, and ends with the one that started it, whose number is the argument."""
TOLERANCE = 1e-3
"""Largest difference of results over the largest magnitude, in float32."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of the calls of one engine, in milliseconds."""

    p50: float
    mean: float
    p99: float

    @staticmethod
    def of(times: Sequence[float]) -> "Latency":
        """The figures of some calls."""
        return Latency(statistics.median(times), statistics.fmean(times), float(np.percentile(times, 99)))


class Engine:
    """An engine that has compiled a model, in a process of its own.

    Parameters
    ----------
    name : str
        One of `engine.ENGINES`.
    model : path
    threads : int
    result : path
        Where its results go.
    group : path, optional
        Of a control group that it joins (`quota_group`).
    checkout : path, optional
        Of the package's source, if not this one.

    Attributes
    ----------
    first_s : float
        Processor seconds up to its first results: to start, to compile, and to run once.

    Raises
    ------
    ModelError
        It cannot run the model.
    """

    def __init__(
        self,
        name: str,
        model: pathlib.Path,
        threads: int,
        result: pathlib.Path,
        group: pathlib.Path | None = None,
        checkout: pathlib.Path | None = None,
    ) -> None:
        self._result = result
        command = [sys.executable, "-m", "tvm_rammer.benchmark.engine", name, str(model), str(threads)]
        command = joining([*command, str(result)], group)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,  # Python takes the package from there
        )
        try:
            self._read()
        except ModelError:
            self._stop()
            raise
        self.first_s = _processor_seconds(self._process.pid)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def results(self) -> list[np.ndarray]:
        """What its first call returned."""
        with np.load(self._result) as found:
            return [found[name] for name in found.files]

    def start(self, seconds: float) -> None:
        """Begin to call the model for so long."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def times(self) -> list[float]:
        """Wait for the times of the calls since `start`, in milliseconds."""
        found: list[float] = json.loads(self._read())
        return found

    def _read(self) -> str:
        assert self._process.stdout is not None
        line: str = self._process.stdout.readline()
        if not line:
            raise ModelError("an engine could not run the model; what it said is above")
        return line


def _processor_seconds(process: int) -> float:
    """What a process has used, in user mode and in the kernel (proc(5), `stat`, fields 14 and 15)."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Have so many processes that never sleep."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def beside_neighbours(
    model: pathlib.Path,
    engines: Sequence[str],
    neighbours: Sequence[int],
    *,
    threads: int,
    seconds: float,
    rounds: int,
    clients: int = 1,
    quota: float | None = None,
    tolerance: float = TOLERANCE,
) -> dict[int, dict[str, Latency]]:
    """Measure engines, in turns, beside each number of busy processes.

    Parameters
    ----------
    model : path
        An ONNX file of float32 inputs of static shapes.
    engines : sequence of str
    neighbours : sequence of int
    threads : int
        Of each engine.
    seconds : float
        Of each measurement; there are `rounds` of them for each engine and each number of neighbours.
    rounds : int
    clients : int
        Processes of an engine that call the model at the same time.
    quota : float, optional
        Processors that each process of an engine may use (`quota_group`); without it as many as there are.
    tolerance : float
        By how much results may differ, over the largest magnitude.

    Raises
    ------
    ToolError
        There can be no control groups here.
    ModelError
        An engine cannot run the model, or results differ by more.
    """
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        group = stack.enter_context(quota_group(quota)) if quota is not None else None
        running = {
            name: [
                stack.enter_context(Engine(name, model, threads, folder / f"{name}{n}.npz", group))
                for n in range(clients)
            ]
            for name in engines
        }
        _check({name: processes[0] for name, processes in running.items()}, tolerance)
        found = {}
        for count in neighbours:
            times: dict[str, list[float]] = {name: [] for name in engines}
            with busy_processes(count):
                for _ in range(rounds):
                    for name, processes in running.items():
                        _measure(processes, seconds / 5)  # caches warm, threads awake
                        times[name] += _measure(processes, seconds)
            found[count] = {name: Latency.of(t) for name, t in times.items()}
        return found


def _measure(processes: Sequence[Engine], seconds: float) -> list[float]:
    for process in processes:
        process.start(seconds)
    return [time for process in processes for time in process.times()]


def installed(engines: Sequence[str]) -> list[str]:
    """Those of the engines that are there."""
    return [name for name in engines if name == "rammer" or importlib.util.find_spec(name) is not None]


def _check(engines: Mapping[str, Engine], tolerance: float = TOLERANCE) -> None:
    (first, *others), results = engines, {name: engine.results() for name, engine in engines.items()}
    for other in others:
        for got, want in zip(results[first], results[other], strict=True):
            if not (error := relative_error(got, want)) <= tolerance:
                raise ModelError(
                    f"{first} and {other} differ by {error:.1e} of the largest magnitude: nothing was timed; "
                    "report the model"
                )
