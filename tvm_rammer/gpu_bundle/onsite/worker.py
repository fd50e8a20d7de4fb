"""One model in a process of its own: loads, checks and times its variants, and says so line by line in JSON."""

import itertools
import json
import time
from array import array
from collections.abc import Callable, Collection
from math import isfinite
from pathlib import Path
from typing import Any

from ...errors import RammerError, ResidencyError, ToolError
from .check import count_different, finite_relative_error
from .cuda import Cuda
from .launcher import Launcher, Work
from .plan import EDGES_FOLDER, WATCHED_FOLDER, Plan, plan_from_json
from .session import Session
from .times.alone import times_alone
from .times.measure import Samples, measure
from .times.prices import measure_prices
from .torch_peer import PEER, TorchRunner, torch_runners

REPEATS = 20
"""Runs that must give the same bits."""

WATCHED_RUNS = 20
"""Runs with a watchdog, before those without."""

REPORT_S = 5.0
Emit = Callable[[dict[str, Any]], None]


class _Runner:
    """A contender: a session's work, launched one way."""

    def __init__(self, session: Session, work: Work, cuda: Cuda, launcher: Launcher) -> None:
        self.session, self.work = session, work
        self._cuda, self._launcher = cuda, launcher

    def batch_us(self, runs: int) -> float:
        return self._cuda.timed_us(self._launcher.stream, lambda: self._launcher.run(self.work, runs))

    def latencies_us(self, runs: int) -> list[float]:
        return self._launcher.latencies_us(self.work, runs)

    def results(self) -> list["array[float]"]:
        """The outputs of one run on poisoned memory."""
        self.session.poison()
        self._launcher.run(self.work)
        return self.session.outputs()


GRAPH, EDGES = "+graph", "+edges"
GRAPHS = (GRAPH, EDGES)
"""The other ways to launch a variant: captured from a stream; with an edge only where there is a dependence."""


def price(folder: Path, library: str, emit: Emit) -> None:
    """Measure the prices of this GPU; raises as `prices.measure_prices` and `work_on`."""
    cuda = Cuda(library)
    prices = measure_prices(folder, cuda, Launcher(folder / "launcher.so", cuda))
    emit({"event": "prices", "prices": prices, "device": cuda.describe()})


def work_on(
    folder: Path,
    name: str,
    seconds: float,
    rounds: int,
    skip: Collection[str],
    library: str,
    emit: Emit,
    *,
    torch: bool = False,
) -> None:
    """Load, check and time one model.

    Parameters
    ----------
    folder : pathlib.Path
        The bundle.
    name : str
        The model.
    seconds : float
        For the timing.
    rounds : int
        Greatest number of rounds.
    skip : collection of str
        Contenders to leave out, because an earlier process was killed by them.
    library : str
        Path of the CUDA driver; empty to look for it.
    emit : callable
        Takes each event as soon as it is known.
    torch : bool
        Whether PyTorch runs the model, too.

    Raises
    ------
    ToolError
        There is no GPU, or a kernel has broken the context.
    """
    model = json.loads((folder / "models" / name / "model.json").read_text(encoding="utf-8"))
    cuda = Cuda(library)
    launcher = Launcher(folder / "launcher.so", cuda)
    emit({"event": "device", **cuda.describe()})
    references = [_doubles(folder / file) for file in model["references"]]
    runners: dict[str, _Runner | TorchRunner] = {}
    runner: _Runner | None
    for variant in model["variants"]:
        names = (variant, *(f"{variant}{way}" for way in GRAPHS))
        if set(names) <= set(skip):
            continue
        contender = f"{variant}-{WATCHED_FOLDER}"
        try:
            if contender not in skip:
                _watch(folder, name, variant, cuda, launcher, emit)
            contender = variant
            session = _load(folder, name, variant, cuda, launcher, emit)
            for contender in names:
                if contender in skip:
                    continue
                emit({"event": "begin", "contender": contender})
                way = contender.removeprefix(variant)
                if way == EDGES:
                    runner = _with_edges(folder, name, variant, cuda, launcher)
                else:
                    runner = _Runner(session, session.graph() if way == GRAPH else session.work, cuda, launcher)
                if runner is not None and _check(contender, runner, references, model["tolerance"], emit):
                    runners[contender] = runner
        except RammerError as error:
            emit({"event": "failed", "contender": contender, "error": str(error)})
            cuda.synchronize()  # a context that a kernel has broken is of no use to the other variants
    _time(runners, seconds / 2 if torch else seconds, rounds, emit)
    if torch:  # its compiler may take all the time that is left: then it is known what the others take
        runners.update(_torch_runners(folder, name, references, model["tolerance"], skip, emit))
        _time(runners, seconds / 2, rounds, emit)
    for contender, timed in runners.items():
        _check(contender, timed, references, model["tolerance"], emit, "checked-again")
    for contender, timed in runners.items():
        if isinstance(timed, _Runner) and contender in model["variants"] and not timed.session.is_cooperative:
            emit({"event": "alone", "variant": contender, "kernels": times_alone(timed.session, cuda, launcher)})


def _torch_runners(
    folder: Path, name: str, references: list["array[float]"], tolerance: float, skip: Collection[str], emit: Emit
) -> dict[str, TorchRunner]:
    """The ways in which PyTorch runs the model, as far as they are right."""
    runners = {}
    contender = PEER
    emit({"event": "begin", "contender": contender})
    try:
        for contender, make in torch_runners(folder, folder / "models" / name):
            if contender in skip:
                continue
            emit({"event": "begin", "contender": contender})
            runner = make()
            if _check(contender, runner, references, tolerance, emit):
                runners[contender] = runner
    except (RammerError, RuntimeError) as error:  # the latter from PyTorch, its compiler, or CUDA below it
        emit({"event": "failed", "contender": contender, "error": str(error)[:500]})
    return runners


def _plan_of(folder: Path, name: str, variant: str, kind: str = "") -> Plan | None:
    """The plan of a variant, or that of a folder beside it; None where there is none."""
    path = folder / "models" / name / variant / kind / "plan.json"
    return plan_from_json(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _with_edges(folder: Path, name: str, variant: str, cuda: Cuda, launcher: Launcher) -> _Runner | None:
    """A variant as a graph that has an edge only where there is a dependence; None where it has no such plan."""
    plan = _plan_of(folder, name, variant, EDGES_FOLDER)
    if plan is None:
        return None
    session = Session(folder, plan, cuda, launcher)
    return _Runner(session, session.graph_with_edges(), cuda, launcher)


def _watch(folder: Path, name: str, variant: str, cuda: Cuda, launcher: Launcher, emit: Emit) -> None:
    """Run what has a watchdog: a variant that hangs is known by who waits for what, and is not run without one."""
    plan = _plan_of(folder, name, variant, WATCHED_FOLDER)
    if plan is None:
        return
    emit({"event": "begin", "contender": f"{variant}-{WATCHED_FOLDER}"})
    try:
        session = Session(folder, plan, cuda, launcher)
    except ResidencyError as error:  # a watchdog takes registers
        emit({"event": "failed", "contender": f"{variant}-{WATCHED_FOLDER}", "error": str(error)})
        return
    for _ in range(WATCHED_RUNS):
        session.poison()
        launcher.run(session.work)
        session.check_hangs()
    emit({"event": "watched", "contender": variant, "runs": WATCHED_RUNS})


def _load(folder: Path, name: str, variant: str, cuda: Cuda, launcher: Launcher, emit: Emit) -> Session:
    started = time.monotonic()
    emit({"event": "begin", "contender": variant})
    plan = _plan_of(folder, name, variant)
    if plan is None:
        raise ToolError(f"the bundle has no plan of {variant} for {name}; build it again")
    session = Session(folder, plan, cuda, launcher)
    uses = list(session.kernels.values())
    emit(
        {
            "event": "loaded",
            "variant": variant,
            "launches": len(plan.launches),
            "kernels": len(uses),
            "max_registers": max(u["registers"] for u in uses),
            "largest": max(uses, key=lambda u: u["registers"]),
            "blocks": max(x * y * z for x, y, z in (launch.grid for launch in plan.launches)),
            "load_s": time.monotonic() - started,
        }
    )
    return session


def _check(
    contender: str,
    runner: _Runner | TorchRunner,
    references: list["array[float]"],
    tolerance: float,
    emit: Emit,
    event: str = "checked",
) -> bool:
    """Compare with the reference, and run after run with the first."""
    first = runner.results()
    pairs = itertools.zip_longest(first, references, fillvalue=array("d"))
    error = max(finite_relative_error(got, want) for got, want in pairs)
    different = count_different(runner.results, first, REPEATS)
    right = error <= tolerance and different == 0
    emit(
        {
            "event": event,
            "contender": contender,
            "max_rel_err": error if isfinite(error) else None,
            "different_runs": different,
            "of_runs": REPEATS,
            "status": "ok" if right else "wrong",
        }
    )
    return right


def _time(runners: dict[str, _Runner | TorchRunner], seconds: float, rounds: int, emit: Emit) -> None:
    if not runners:
        return
    last_report = time.monotonic()
    samples: dict[str, Samples] = {}
    for done, samples in measure(runners, seconds, rounds):
        if time.monotonic() - last_report > REPORT_S:
            last_report = time.monotonic()
            emit({"event": "timed", "rounds": done, "results": {n: s.summary() for n, s in samples.items()}})
    emit({"event": "timed", "rounds": done, "results": {n: s.summary() for n, s in samples.items()}})


def _doubles(path: Path) -> "array[float]":
    values = array("d")
    values.frombytes(path.read_bytes())
    return values
