"""How long a new process takes to its first answer: the interpreter, imports, compiling or loading, and one run."""

import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ..errors import ModelError
from .engine import inputs_of
from .peers import PACKAGES
from .race import relative_error

TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Way:
    """A way to get an answer.

    Parameters
    ----------
    label : str
    engine : str
        A key of `first_answer.ENGINES`.
    cached : bool
        Whether earlier processes may have left something; one that is not timed goes first.
    """

    label: str
    engine: str
    cached: bool


WAYS = (
    Way("tvm_rammer", "rammer", False),
    Way("tvm_rammer, cache", "rammer", True),
    Way("tvm_rammer, saved", "rammer-saved", True),
    Way("ONNX Runtime", "onnxruntime", False),
    Way("OpenVINO", "openvino", False),
    Way("OpenVINO, CACHE_DIR", "openvino", True),
)


def first_answers(model: onnx.ModelProto, *, threads: int, runs: int) -> dict[str, float]:
    """Time the first answer of new processes, all ways in turn.

    Parameters
    ----------
    model : onnx.ModelProto
        Of static shapes and float32 inputs.
    threads : int
        Of each engine.
    runs : int
        Processes for each way.

    Returns
    -------
    dict of str to float
        For each way whose engine is installed the median, in seconds.

    Raises
    ------
    ModelError
        An engine fails, or the results differ.
    """
    ways = [way for way in WAYS if way.engine not in PACKAGES or importlib.util.find_spec(way.engine)]
    with tempfile.TemporaryDirectory(prefix="rammer-") as name:
        folder = pathlib.Path(name)
        onnx.save(model, folder / "model.onnx")
        inputs: dict[str, Any] = dict(inputs_of(str(folder / "model.onnx")))
        np.savez(folder / "inputs.npz", **inputs)
        _save(folder, threads)
        for way in ways:
            if way.cached:
                _answer(way, folder, threads)
        times: dict[str, list[float]] = {way.label: [] for way in ways}
        for _ in range(runs):
            reference = None
            for way in ways:
                times[way.label].append(_answer(way, folder, threads))
                results = _results(folder)
                reference = results if reference is None else reference
                _check(way, results, reference)
    return {label: statistics.median(found) for label, found in times.items()}


def _save(folder: pathlib.Path, threads: int) -> None:
    """Save the model, compiled, in a process of its own: this one may have other threads by now."""
    import tvm_rammer

    module = tvm_rammer.compile(folder / "model.onnx", threads=threads, cache=False)
    module.save(folder / "model.rammer")


def _answer(way: Way, folder: pathlib.Path, threads: int) -> float:
    """Seconds from the start of a process to its answer."""
    model = folder / ("model.rammer" if way.engine == "rammer-saved" else "model.onnx")
    arguments = [way.engine, str(model), str(folder / "inputs.npz"), str(folder / "results.npz"), str(threads)]
    if way.cached:
        arguments.append(str(folder / f"cache of {way.engine}"))
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "tvm_rammer.benchmark.first_answer", *arguments], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"RAMMER_CACHE_BYTES": str(1 << 30), "TVM_NUM_THREADS": str(threads)},
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    elapsed_s = time.perf_counter() - started
    process.communicate()
    if not line or process.returncode:
        raise ModelError(f"{way.label} could not run the model; what it said is above")
    return elapsed_s


def _results(folder: pathlib.Path) -> list[np.ndarray]:
    with np.load(folder / "results.npz") as found:
        return [found[name] for name in found.files]


def _check(way: Way, results: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> None:
    error = max(relative_error(got, want) for got, want in zip(results, reference, strict=True))
    if not error <= TOLERANCE:
        raise ModelError(f"the results of {way.label} differ by {error:.1e} of the largest magnitude; report the model")
