"""Other ways to the same results: files, threads, open shapes, other plans. The same code returns the same bits."""

import pathlib
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer.relay_passes.onnx.lower.recurrence.loops import FEWEST_ITERATIONS
from tvm_rammer.wavefront import POLICIES

from ..generate.sequences import TIME, shortened
from .compare import difference, largest_of, unit_of
from .onnx_judges import Judgement

Feeds = Mapping[str, np.ndarray]
Results = list[np.ndarray]


@dataclass(frozen=True)
class Task:
    """A model that was compiled, and a folder for what is made of it."""

    model: onnx.ModelProto
    module: Any
    feeds: Feeds
    folder: pathlib.Path
    rng: random.Random

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What has to be said of the inputs: a file that says 0 leaves a size open."""
        return empty_shapes(self.feeds)


def empty_shapes(feeds: Feeds) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in feeds.items() if not array.size}


def results_of(module: Any, feeds: Feeds) -> Results:
    got = module(**{s.name: feeds[s.name] for s in module.inputs})
    return [np.asarray(a) for a in (got if isinstance(got, tuple) else (got,))]


def saved(task: Task) -> list[Results]:
    once = tvm_rammer.load(task.module.save(task.folder / "once.rammer"))
    return [results_of(m, task.feeds) for m in (once, tvm_rammer.load(once.save(task.folder / "twice.rammer")))]


def library(task: Task) -> list[Results]:
    """By plain TVM."""
    import tvm
    from tvm import relax

    made = tvm.runtime.load_module(str(task.module.export_library(task.folder / "model.so")))
    given = [tvm.runtime.tensor(task.feeds[s.name]) for s in task.module.inputs]
    got = relax.VirtualMachine(made, tvm.cpu())["main"](*given)
    return [[t.numpy() for t in ([got] if isinstance(got, tvm.runtime.Tensor) else got)]]


def cached(task: Task) -> list[Results]:
    cache = task.folder / "cache"
    return [results_of(tvm_rammer.compile(task.model, shapes=task.shapes, cache=cache), task.feeds) for _ in range(2)]


def threads(task: Task) -> list[Results]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: results_of(task.module, task.feeds), range(16)))


def opened(task: Task) -> list[Results]:
    """With some dimensions open until the call."""
    model = onnx.ModelProto()
    model.CopyFrom(task.model)
    for value in model.graph.input:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if task.rng.random() < 0.6:
                dim.dim_param = f"{value.name}_{i}"
    for value in model.graph.output:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{i}"
    return [results_of(tvm_rammer.compile(model, cache=False), task.feeds)]


def planned(task: Task) -> list[Results]:
    """By another plan."""
    how: dict[str, Any] = task.rng.choice(
        [
            {"policy": task.rng.choice([p for p in POLICIES if p not in ("ios", "search")])},
            {"sync": "global"},
            {"threads": task.rng.choice([1, 3, 5])},
            {"loops": False},
            {"concurrency": 1},
        ]
    )
    return [results_of(tvm_rammer.compile(task.model, shapes=task.shapes, cache=False, **how), task.feeds)]


def together(task: Task) -> list[Results]:
    """Twice in one module."""
    models, shapes = [task.model] * 2, [task.shapes] * 2
    module = tvm_rammer.compile_together(models, shapes=shapes, cache=False)
    got = module.run(None, {f"model{i}_{name}": a for i in range(2) for name, a in task.feeds.items()})
    return [list(got[: len(got) // 2]), list(got[len(got) // 2 :])]


EXACT: dict[str, Callable[[Task], list[Results]]] = {"saved": saved, "library": library, "threads": threads}
"""The very code that was compiled."""
NEAR: dict[str, Callable[[Task], list[Results]]] = {
    "cached": cached, "opened": opened, "planned": planned, "together": together,
}  # fmt: skip
"""Compiled anew."""


def way_of(rng: random.Random, judged: bool) -> str:
    """The name of a way; only what compiles nothing anew where nobody knows what is right."""
    return rng.choice(list(NEAR if judged and rng.random() < 0.6 else EXACT))


def judge_way(seed: int, data: bytes, feeds: Feeds, verdict: Judgement | None = None) -> str:
    """Say what is wrong with a result, or with what came of it in a way that follows from the seed; else nothing.

    Parameters
    ----------
    seed : int
    data : bytes
        An ONNX model.
    feeds : mapping of str to array
    verdict : Judgement, optional
        What is right; without it the way is one of `EXACT`.
    """
    model, rng = onnx.load_from_string(data), random.Random(f"ways/{seed}")
    name = way_of(rng, verdict is not None)
    module = tvm_rammer.compile(model, shapes=empty_shapes(feeds), cache=False)
    plain = results_of(module, feeds)
    if verdict is not None and (fault := verdict.fault(plain)):
        return fault
    with tempfile.TemporaryDirectory() as folder:
        task = Task(model, module, feeds, pathlib.Path(folder), rng)
        try:
            found = (EXACT | NEAR)[name](task)
        except tvm_rammer.RammerError as error:
            # Models with functions of their own cannot be joined.
            return "" if name == "together" and "has the functions" in str(error) else f"{name}: refused: {error}"
    for got in found:
        fault = verdict.fault(got) if verdict is not None and name in NEAR else unlike(got, plain)
        if fault:
            return fault if fault == "unstable" else f"{name}: {fault}"
    return ""


def judge_lengths(seed: int, data: bytes, feeds: Feeds, verdict: Judgement | None = None) -> str:
    """Say what is wrong with a model whose number of steps is open; parameters as `judge_way`.

    Each length has the bits of the model that was compiled for it alone, if it is not unrolled there.
    """
    model, rng = onnx.load_from_string(data), random.Random(f"lengths/{seed}")
    most = max(len(shortened(dict(feeds), model, 1 << 30)[i.name]) for i in model.graph.input if _is_open(i))
    module = tvm_rammer.compile(model, shapes={TIME: (1, most + rng.choice([0, 5]))}, cache=False)
    for steps in (most, rng.randint(1, most)):
        given = shortened(dict(feeds), model, steps)
        got = results_of(module, given)
        if steps == most and verdict is not None and (fault := verdict.fault(got)):
            return fault
        alone = results_of(tvm_rammer.compile(model, shapes={TIME: steps}, cache=False), given)
        if steps < FEWEST_ITERATIONS:
            fault = difference(got, alone, unit_of(alone), largest_of(alone)) or ""
        else:
            fault = unlike(got, alone)
        if fault:
            return f"of {steps} steps: {fault}"
    return ""


def _is_open(value: onnx.ValueInfoProto) -> bool:
    return any(d.dim_param == TIME for d in value.type.tensor_type.shape.dim)


def unlike(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> str:
    """Where two results have other bits, NaNs aside."""
    if len(got) != len(want):
        return f"count: {len(got)} results instead of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"shape: result {i} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return f"bits: result {i} differs by {np.abs(a.astype('float64') - b.astype('float64')).max()}"
    return ""
