"""Compare a compiled model with others, fairly: interleaved in one process, on the same number of threads.

The contenders take turns in blocks of about 0.3 s. A block during which other processes took the cores
is measured again. Results are checked before anything is timed.
"""

import importlib.util
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

from . import driver, relay_passes
from .compilation import Compilation
from .errors import ModelError
from .module import RammerModule, TensorSpec
from .pipeline import finish
from .regions import schedule_regions

BLOCK_S = 0.3
DISTURBED = 0.1
"""A block is measured again if other processes used more than this share of a core meanwhile."""
RETRIES = 3
PAUSE_S = 0.05
"""Between two contenders: ONNX Runtime's threads go on spinning for a while after a run."""
CONTENDERS = ("stock", "stock-same-kernels", "onnxruntime")

Runner = Callable[[Sequence[np.ndarray]], Sequence[Any]]


@dataclass(slots=True)
class Samples:
    """Times of one contender, in milliseconds, and how far its results are from the reference."""

    times: list[float] = field(default_factory=list)
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


def bench(
    model: str | os.PathLike[str],
    *,
    target: str = "cpu",
    against: Sequence[str] = ("stock",),
    shapes: Mapping[str, Sequence[int]] | None = None,
    repeat: int = 50,
    policy: str = "wavefront",
    sync: str = "auto",
    tuning_logs: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda message: None,
) -> dict[str, Any]:
    """Time a model against contenders.

    Parameters
    ----------
    model : path
        An ONNX file.
    target : str
        Where our side runs; the contenders run on the same device.
    against : sequence of str
        Some of `CONTENDERS`. `stock` is TVM's default build; `stock-same-kernels` launches our kernels one
        by one through the stock VM; `onnxruntime` needs that package.
    shapes : mapping of str to sequence of int, optional
    repeat : int
        Runs of each contender.
    policy, sync, tuning_logs
        As in `tvm_rammer.compile`.
    seed : int
        Of the random inputs.
    progress : callable
        Is told what happens next.

    Returns
    -------
    dict
        `model`, `target`, `threads`, `results` and `ratios` by contender (a ratio is the contender's median
        over ours), `missing` (contenders that are not installed), `report`.

    Raises
    ------
    ModelError
        An unknown contender, or results that differ by more than 1e-3 of the largest magnitude.
    """
    unknown = [name for name in against if name not in CONTENDERS]
    if unknown:
        raise ModelError(f"unknown contenders {', '.join(unknown)}; choose from {', '.join(CONTENDERS)}")
    if repeat < 1:
        raise ModelError(f"repeat is {repeat}; give 1 or more")
    progress("compiling with Rammer")
    module = driver.compile(model, target=target, shapes=shapes, policy=policy, sync=sync, tuning_logs=tuning_logs)
    inputs = random_inputs(module.inputs, seed)
    runners: dict[str, Runner] = {"rammer": _tvm_runner(module.executable, module.runtime_device())}
    missing = {}
    for name in against:
        if name == "onnxruntime" and importlib.util.find_spec("onnxruntime") is None:
            missing[name] = "the package onnxruntime is not installed"
            continue
        progress(f"building {name}")
        runners[name] = _contender(name, model, shapes, tuning_logs, module)
    samples = {name: Samples() for name in runners}
    progress("checking results")
    _check(runners, inputs, samples)
    _measure(runners, inputs, samples, repeat, progress)
    results = {name: s.summary() for name, s in samples.items()}
    ours = results["rammer"]["median_ms"]
    return {
        "model": str(model),
        "target": target,
        "threads": module.compilation.device.units,
        "workers": workers(),
        "results": results,
        "ratios": {name: r["median_ms"] / ours for name, r in results.items() if name != "rammer"},
        "missing": missing,
        "report": module.report(),
    }


def workers() -> int:
    """Workers of this thread's TVM pool."""
    return int(tvm.get_global_func("runtime.NumThreads")())


def random_inputs(specs: Sequence[TensorSpec], seed: int) -> list[np.ndarray]:
    """Make seeded inputs: normal floats, small whole numbers, random truth values."""
    rng = np.random.default_rng(seed)
    made = []
    for spec in specs:
        if spec.dtype == "bool":
            made.append(rng.integers(0, 2, spec.shape).astype(bool))
        elif "int" in spec.dtype:
            made.append(rng.integers(0, 2, spec.shape).astype(spec.dtype))
        else:
            made.append(rng.standard_normal(spec.shape).astype(spec.dtype))
    return made


def _contender(
    name: str,
    model: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int]] | None,
    tuning_logs: str | os.PathLike[str] | None,
    module: RammerModule,
) -> Runner:
    if name == "onnxruntime":
        return _onnxruntime_runner(model, module)
    tvm_target = tvm.target.Target(module.compilation.device.target_config())
    mod = relay_passes.load_model(model, shapes)
    if name == "stock":
        return _tvm_runner(tvm.compile(mod, tvm_target), module.runtime_device())
    mod = relay_passes.prepare(tvm_target)(mod)
    ours = module.compilation
    mod = schedule_regions(mod, Compilation(ours.device, ours.policy, ours.sync), tuning_logs, single_calls=True)
    mod = finish(tvm_target)(mod)
    return _tvm_runner(driver.build(mod, tvm_target), module.runtime_device())


def _tvm_runner(executable: relax.VMExecutable, device: tvm.runtime.Device) -> Runner:
    main = relax.VirtualMachine(executable, device)["main"]
    tensors: list[Any] = []

    def run(arrays: Sequence[np.ndarray]) -> Sequence[Any]:
        if not tensors:
            tensors.extend(tvm.runtime.tensor(a, device) for a in arrays)
        result = main(*tensors)
        device.sync()
        return [result] if isinstance(result, tvm.runtime.Tensor) else list(result)

    return run


def _onnxruntime_runner(model: str | os.PathLike[str], module: RammerModule) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = module.compilation.device.units
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [spec.name for spec in module.inputs]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def _check(runners: Mapping[str, Runner], inputs: Sequence[np.ndarray], samples: Mapping[str, Samples]) -> None:
    """Compare every contender with the last one given, the most independent of our code."""
    results = {name: [_numpy(t) for t in run(inputs)] for name, run in runners.items()}
    reference = results[list(results)[-1]]
    for name, result in results.items():
        samples[name].max_rel_err = max(
            (relative_error(a, b) for a, b in zip(result, reference, strict=True)), default=0.0
        )
        if not samples[name].max_rel_err <= 1e-3:
            raise ModelError(
                f"{name} and {list(results)[-1]} differ by {samples[name].max_rel_err:.1e} of the largest magnitude: "
                "nothing was timed"
            )


def _numpy(tensor: Any) -> np.ndarray:
    return tensor.numpy() if isinstance(tensor, tvm.runtime.Tensor) else np.asarray(tensor)


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference over the largest magnitude; infinite where one side is not finite or has another shape."""
    if got.shape != want.shape:
        return float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if a.size == 0:
        return 0.0
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def _measure(
    runners: Mapping[str, Runner],
    inputs: Sequence[np.ndarray],
    samples: Mapping[str, Samples],
    repeat: int,
    progress: Callable[[str], None],
) -> None:
    for run in runners.values():
        run(inputs)
    while any(len(s.times) < repeat for s in samples.values()):
        done = min(len(s.times) for s in samples.values())
        progress(f"measuring: {done} of {repeat} runs each")
        for name, run in runners.items():
            if len(samples[name].times) < repeat:
                samples[name].times += _block(run, inputs, repeat - len(samples[name].times), samples[name])


def _block(run: Runner, inputs: Sequence[np.ndarray], limit: int, samples: Samples) -> list[float]:
    for _ in range(RETRIES):
        time.sleep(PAUSE_S)
        others, started, times = _others_seconds(), time.perf_counter(), []
        while len(times) < limit and (not times or time.perf_counter() - started < BLOCK_S):
            begin = time.perf_counter()
            run(inputs)
            times.append((time.perf_counter() - begin) * 1e3)
        stolen = (_others_seconds() - others) / (time.perf_counter() - started)
        if stolen <= DISTURBED:
            break
        samples.disturbed += 1
    return times


def _others_seconds() -> float:
    """Processor time that all other processes have used so far, in seconds; 0 where nobody tells."""
    try:
        busy = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal, *_ = (int(word) for word in busy)
    mine = sum(os.times()[:2])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - mine


__all__ = ["CONTENDERS", "bench", "random_inputs", "relative_error", "workers"]
