"""Single operators against ONNX Runtime or OpenVINO: each as a model of one node, on the same number of threads."""

import importlib.util
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from .. import driver
from ..errors import ModelError
from ..runtime.module import RammerModule
from ..runtime.tensors import random_inputs
from .operators import BYTES_OPERATORS, CHOSEN_OPERATORS, OPERATORS, BytesOperator, ChosenOperator, Operator
from .peers import PACKAGES, onnxruntime_session, openvino_runner
from .race import relative_error

AnyOperator = Operator | BytesOperator | ChosenOperator

BLOCK_S, PAUSE_S = 0.1, 0.05
"""Time of a block of runs of one contender; and a pause between blocks, so that the threads of the one, which spin
for a while when they have no work, do not use the other's cores."""
WARM_UP = 3
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one operator.

    Parameters
    ----------
    ours_ms, peer_ms, predicted_ms : float
        Medians; and what the cost model said of our kernel.
    ratio : float
        The peer's time over ours.
    rtasks : int
    """

    operator: str
    ours_ms: float
    peer_ms: float
    ratio: float
    rtasks: int
    predicted_ms: float


def bench_kernels(
    only: str = "",
    *,
    against: str = "onnxruntime",
    seconds: float = 0.6,
    tuning_logs: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> list[Row]:
    """Time every operator whose name contains `only`.

    Parameters
    ----------
    against : {"onnxruntime", "openvino"}
        The peer; its package must be installed.
    seconds : float
        For each operator and contender.
    tuning_logs : path, optional
    progress : callable
        Gets each operator's name before it is timed.

    Raises
    ------
    ModelError
        An unknown peer, or one that is not installed, or that gets every operator wrong; or a result of ours is wrong.

    Notes
    -----
    Where results differ, onnx's reference evaluator says whose are right. An operator that the peer gets wrong is left
    out, and `progress` gets the reason: ONNX Runtime's sums of bytes overflow on an x86 processor without VNNI.
    """
    if against not in PACKAGES or importlib.util.find_spec(against) is None:
        raise ModelError(f"unknown peer {against!r}, or it is not installed; choose one of {', '.join(PACKAGES)}")
    rows = []
    operators: dict[str, AnyOperator] = {**OPERATORS, **BYTES_OPERATORS, **CHOSEN_OPERATORS}
    for name, operator in operators.items():
        if only in name:
            progress(name)
            try:
                rows.append(_row(name, operator, against, seconds, tuning_logs))
            except _PeerError as error:
                progress(f"{name} is left out: {error}")
    if not rows:
        raise ModelError(f"no operator whose name contains {only!r} can be timed against {against}")
    return rows


class _PeerError(ModelError):
    """The peer's result is wrong."""


def _row(
    name: str,
    operator: AnyOperator,
    against: str,
    seconds: float,
    tuning_logs: str | os.PathLike[str] | None,
) -> Row:
    model = operator.model()
    module = driver.compile(model, tuning_logs=tuning_logs, cache=False)
    inputs = _inputs(module)
    ours, theirs = _ours(module, inputs), _peer(against, model, module, inputs)
    results = ours()
    results = [results] if operator.outputs == 1 else list(results)
    error = max(relative_error(a.numpy(), b) for a, b in zip(results, theirs(), strict=True))
    if not error <= _tolerance(results[0].numpy()):
        found = f"results differ by {error:.1e} of the largest magnitude"
        feeds = {spec.name: a for spec, a in zip(module.inputs, inputs, strict=True)}
        exact = list(ReferenceEvaluator(model).run(None, feeds))
        if max(relative_error(a.numpy(), b) for a, b in zip(results, exact, strict=True)) <= _tolerance(exact[0]):
            raise _PeerError(f"{found}, and ours are those of onnx's reference evaluator")
        raise ModelError(f"{name}: {found}: nothing was timed")
    ours_ms, peer_ms = _medians((ours, theirs), seconds)
    units = module.compilation.device.units
    kernels = [k for program in module.rprograms for k in program.kernels]
    predicted = sum(-(-k.num_rtasks // units) * k.rtask_us for k in kernels) / 1e3
    return Row(name, ours_ms, peer_ms, peer_ms / ours_ms, sum(k.num_rtasks for k in kernels), predicted)


def _inputs(module: RammerModule) -> list[np.ndarray]:
    """Seeded inputs; bytes are of their whole range."""
    rng = np.random.default_rng(1)
    usual = random_inputs(module.inputs, seed=1)
    return [rng.integers(0, 256, a.shape, np.uint8) if a.dtype == np.uint8 else a for a in usual]


def _tolerance(result: np.ndarray) -> float:
    """How far results may be apart: bytes by one, since a number may lie between two."""
    return 1 / float(result.max()) if result.dtype == np.uint8 else TOLERANCE


def _ours(module: RammerModule, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
    import tvm
    from tvm import relax

    main = relax.VirtualMachine(module.executable, tvm.cpu())["main"]
    tensors = [tvm.runtime.tensor(a) for a in inputs]

    return lambda: main(*tensors)


def _peer(
    against: str, model: onnx.ModelProto, module: RammerModule, inputs: Sequence[np.ndarray]
) -> Callable[[], Any]:
    contents, threads = model.SerializeToString(), module.compilation.device.units
    if against == "openvino":
        run = openvino_runner(contents, threads)
        return lambda: run(inputs)
    session = onnxruntime_session(contents, threads)
    feeds = {spec.name: a for spec, a in zip(module.inputs, inputs, strict=True)}
    return lambda: session.run(None, feeds)


def _medians(runs: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Median milliseconds of each; blocks of runs are interleaved."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(max(1, round(seconds / BLOCK_S))):
        for run, mine in zip(runs, times, strict=True):
            time.sleep(PAUSE_S)
            for _ in range(WARM_UP):
                run()
            end = time.perf_counter() + BLOCK_S
            while time.perf_counter() < end:
                begin = time.perf_counter()
                run()
                mine.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(mine) for mine in times]


def geometric_mean(values: Sequence[float]) -> float:
    """The n-th root of the product."""
    return math.exp(sum(math.log(v) for v in values) / len(values))


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures that `--json` writes."""
    ratios = [row.ratio for row in rows]
    return {
        "operators": [asdict(row) for row in rows],
        "geometric_mean": geometric_mean(ratios),
        "minimum": min(ratios),
    }


def as_table(rows: Sequence[Row]) -> str:
    """The table that is printed."""
    lines = [f"{'operator':32}{'ours ms':>9}{'peer ms':>9}{'ratio':>7}{'rTasks':>8}{'predicted':>11}"]
    lines += [
        f"{r.operator:32}{r.ours_ms:9.3f}{r.peer_ms:9.3f}{r.ratio:7.2f}{r.rtasks:8}{r.predicted_ms:11.3f}" for r in rows
    ]
    figures = as_json(rows)
    return "\n".join([*lines, f"geometric mean {figures['geometric_mean']:.2f}, minimum {figures['minimum']:.2f}"])
