"""Interleaved timing of contenders that must compute the same, on a machine with other load.

In each round every contender runs for one block of 0.1 to 0.3 s. A block during which other processes used the cores
is measured again. Load of other virtual machines on the same hardware does not show in this machine's counters: so the
slower half of the rounds, of all contenders together, is discarded. Results are checked before anything is timed.
"""

import os
import pathlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..errors import ModelError
from ..runtime.pool import use_workers
from .peers import Runner

ROUNDS = 6
"""Least number of rounds by default; half of them count."""
MIN_BLOCK_S, MAX_BLOCK_S = 0.1, 0.3
"""Least time of a block of short runs, and greatest of one of long runs; a block has at least one run."""
ENOUGH_S = 60.0
"""Once the rounds have taken so long, no more are made than the least: one run of stock TVM may take seconds."""
DISTURBED = 0.1
"""A block is measured again if other processes used more than this share of a core meanwhile."""
RETRIES = 3
MOST_DIFFERENCE = 1e-3
"""Of results, relative to the largest magnitude, at most."""
PAUSE_S = 0.05
"""Between two contenders: ONNX Runtime's threads go on spinning for a while after a run."""


@dataclass(slots=True)
class Samples:
    """Times of one contender, in milliseconds, and how far its results are from the reference.

    `times` are of all runs that count, `medians` one for each round that counts: in a round all contenders ran under
    the same load.
    """

    times: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    max_rel_err: float = 0.0
    disturbed: int = 0

    def summary(self) -> dict[str, float]:
        """The figures that the JSON file holds."""
        ordered = sorted(self.times)
        return {
            "median_ms": statistics.median(ordered),
            "p90_ms": ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))],
            "n": len(ordered),
            "max_rel_err": self.max_rel_err,
            "disturbed_blocks": self.disturbed,
        }


def race(
    runners: Mapping[str, Runner],
    inputs: Sequence[np.ndarray],
    repeat: int,
    progress: Callable[[str], None] = lambda message: None,
    rounds: int = ROUNDS,
    tolerance: float = MOST_DIFFERENCE,
) -> dict[str, Samples]:
    """Check that all contenders compute the same, then time them, interleaved.

    Parameters
    ----------
    runners : mapping of str to callable
        At least one, by name; the last one is the reference for errors.
    inputs : sequence of numpy.ndarray
    repeat : int
        Runs of each contender, at least; fewer where they are long (`ENOUGH_S`).
    progress : callable
        Gets a message before each step.
    rounds : int
        Least number of rounds.
    tolerance : float
        How far results may be from one another, relative to the largest magnitude.

    Returns
    -------
    dict of str to Samples

    Raises
    ------
    ModelError
        Results differ by more than `tolerance`.
    """
    samples = {name: Samples() for name in runners}
    progress("checking results")
    _check(runners, inputs, samples, tolerance)
    _measure(runners, inputs, samples, repeat, progress, rounds)
    return samples


def _check(
    runners: Mapping[str, Runner], inputs: Sequence[np.ndarray], samples: Mapping[str, Samples], tolerance: float
) -> None:
    """Compare every contender with the last one given, the most independent of our code."""
    results = {name: arrays_of(run(inputs)) for name, run in runners.items()}
    reference = results[list(results)[-1]]
    for name, result in results.items():
        samples[name].max_rel_err = difference(result, reference)
        if not samples[name].max_rel_err <= tolerance:
            far = f"{samples[name].max_rel_err:.1e} of the largest magnitude, more than {tolerance:g}"
            raise ModelError(
                f"{name} and {list(results)[-1]} differ by {far}: nothing was timed; "
                "give a larger tolerance if rounding explains it, otherwise report the model"
            )


def arrays_of(results: Sequence[Any]) -> list[np.ndarray]:
    """The results of a contender as arrays."""
    return [r.numpy() if isinstance(r, tvm.runtime.Tensor) else np.asarray(r) for r in results]


def difference(results: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """The largest of the results' relative errors; infinite where there are more or fewer."""
    if len(results) != len(reference):
        return float("inf")
    return max((relative_error(a, b) for a, b in zip(results, reference, strict=True)), default=0.0)


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference over the largest magnitude; infinite where other elements are infinite or NaN, or the shapes
    differ.
    """
    if got.shape != want.shape:
        return float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not (np.isfinite(a[finite]).all() and np.array_equal(a[~finite], b[~finite], equal_nan=True)):
        return float("inf")
    a, b = a[finite], b[finite]
    if a.size == 0:
        return 0.0
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def _measure(
    runners: Mapping[str, Runner],
    inputs: Sequence[np.ndarray],
    samples: Mapping[str, Samples],
    repeat: int,
    progress: Callable[[str], None],
    least: int,
) -> None:
    for run in runners.values():
        run(inputs)
    rounds: list[dict[str, list[float]]] = []
    end = time.perf_counter() + ENOUGH_S
    while len(rounds) < least or (time.perf_counter() < end and any(len(s.times) < repeat for s in samples.values())):
        progress(f"measuring: round {len(rounds) + 1}")
        wanted = -(-2 * repeat // least)
        rounds.append({name: _block(run, inputs, wanted, samples[name]) for name, run in runners.items()})
        quiet = _quieter_half(rounds)
        for name in runners:
            samples[name].times = [time for one in quiet for time in one[name]]
            samples[name].medians = [statistics.median(one[name]) for one in quiet]


def _quieter_half(rounds: Sequence[Mapping[str, Sequence[float]]]) -> list[Mapping[str, Sequence[float]]]:
    """The rounds in which the contenders, each compared with its best round, were fastest on average."""
    medians = [{name: statistics.median(times) for name, times in one.items()} for one in rounds]
    best = {name: min(one[name] for one in medians) for name in medians[0]}
    slowed = [statistics.mean(one[name] / best[name] for name in best) for one in medians]
    order = sorted(range(len(rounds)), key=slowed.__getitem__)
    return [rounds[n] for n in sorted(order[: -(-len(rounds) // 2)])]


def _block(run: Runner, inputs: Sequence[np.ndarray], wanted: int, samples: Samples) -> list[float]:
    for _ in range(RETRIES):
        time.sleep(PAUSE_S)
        others, started, passed = _others_seconds(), time.perf_counter(), 0.0
        times: list[float] = []
        while not times or passed < (MIN_BLOCK_S if len(times) >= wanted else MAX_BLOCK_S):
            begin = time.perf_counter()
            run(inputs)
            end = time.perf_counter()
            times.append((end - begin) * 1e3)
            passed = end - started
        if (_others_seconds() - others) / passed <= DISTURBED:
            break
        samples.disturbed += 1
    return times


def _others_seconds() -> float:
    """Processor time that all other processes have used so far, in seconds; 0 where it is unknown."""
    try:
        busy = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal, *_ = (int(word) for word in busy)
    mine = sum(os.times()[:2])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - mine


def tvm_runner(executable: relax.VMExecutable, device: tvm.runtime.Device) -> Runner:
    """Make a contender of a compiled module; the inputs of its first run are those of all runs."""
    use_workers()
    main = relax.VirtualMachine(executable, device)["main"]
    tensors: list[Any] = []

    def run(arrays: Sequence[np.ndarray]) -> Sequence[Any]:
        if not tensors:
            tensors.extend(tvm.runtime.tensor(a, device) for a in arrays)
        result = main(*tensors)
        device.sync()
        return [result] if isinstance(result, tvm.runtime.Tensor) else list(result)

    return run
