"""Engines beside busy processes: each engine alone in a process of its own, with neighbours that never sleep."""

import contextlib
import importlib.util
import json
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
from .race import relative_error

BUSY = "while True: pass"
TOLERANCE = 1e-3


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
    folder : path
        Where its results go.

    Raises
    ------
    ModelError
        It cannot run the model.
    """

    def __init__(self, name: str, model: pathlib.Path, threads: int, folder: pathlib.Path) -> None:
        self._result = folder / f"{name}.npz"
        command = [sys.executable, "-m", "tvm_rammer.benchmark.engine", name, str(model), str(threads)]
        self._process = subprocess.Popen(
            [*command, str(self._result)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def results(self) -> list[np.ndarray]:
        """What its first call returned."""
        with np.load(self._result) as found:
            return [found[name] for name in found.files]

    def measure(self, seconds: float) -> list[float]:
        """Call the model for so long; the times of the calls in milliseconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        times: list[float] = json.loads(self._read())
        return times

    def _read(self) -> str:
        assert self._process.stdout is not None
        line: str = self._process.stdout.readline()
        if not line:
            raise ModelError("an engine could not run the model; what it said is above")
        return line


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Have so many processes that never sleep."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def beside_neighbours(
    model: pathlib.Path, engines: Sequence[str], neighbours: Sequence[int], *, threads: int, seconds: float, rounds: int
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

    Raises
    ------
    ModelError
        An engine cannot run the model, or results differ by more than 1e-3 of the largest magnitude.
    """
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = {name: stack.enter_context(Engine(name, model, threads, folder)) for name in engines}
        _check(running)
        found = {}
        for count in neighbours:
            times: dict[str, list[float]] = {name: [] for name in engines}
            with busy_processes(count):
                for _ in range(rounds):
                    for name, engine in running.items():
                        engine.measure(seconds / 5)  # caches warm, threads awake
                        times[name] += engine.measure(seconds)
            found[count] = {name: Latency.of(t) for name, t in times.items()}
        return found


def installed(engines: Sequence[str]) -> list[str]:
    """Those of the engines that are there."""
    return [name for name in engines if name == "rammer" or importlib.util.find_spec(name) is not None]


def _check(engines: Mapping[str, Engine]) -> None:
    (first, *others), results = engines, {name: engine.results() for name, engine in engines.items()}
    for other in others:
        for got, want in zip(results[first], results[other], strict=True):
            if not (error := relative_error(got, want)) <= TOLERANCE:
                raise ModelError(
                    f"{first} and {other} differ by {error:.1e} of the largest magnitude: nothing was timed"
                )
