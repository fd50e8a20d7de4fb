"""Compare a compiled model with others, fairly: interleaved in one process, on the same number of threads."""

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm

from . import driver, relay_passes
from .compilation import Compilation
from .errors import ModelError
from .module import RammerModule, TensorSpec
from .pipeline import finish
from .race import Runner, race, relative_error, tvm_runner
from .regions import schedule_regions

CONTENDERS = ("stock", "stock-same-kernels", "onnxruntime")


def bench(
    model: str | os.PathLike[str],
    *,
    target: str = "cpu",
    against: Sequence[str] = ("stock",),
    shapes: Mapping[str, Sequence[int]] | None = None,
    repeat: int = 50,
    policy: str = "auto",
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
    runners: dict[str, Runner] = {"rammer": tvm_runner(module.executable, module.runtime_device())}
    missing = {}
    for name in against:
        if name == "onnxruntime" and importlib.util.find_spec("onnxruntime") is None:
            missing[name] = "the package onnxruntime is not installed"
            continue
        progress(f"building {name}")
        runners[name] = _contender(name, model, shapes, tuning_logs, module)
    results = {name: s.summary() for name, s in race(runners, inputs, repeat, progress).items()}
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
        return tvm_runner(tvm.compile(mod, tvm_target), module.runtime_device())
    mod = relay_passes.prepare(tvm_target)(mod)
    ours = module.compilation
    mod = schedule_regions(mod, Compilation(ours.device, ours.policy, ours.sync), tuning_logs, single_calls=True)
    mod = finish(tvm_target)(mod)
    return tvm_runner(driver.build(mod, tvm_target), module.runtime_device())


def _onnxruntime_runner(model: str | os.PathLike[str], module: RammerModule) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = module.compilation.device.units
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [spec.name for spec in module.inputs]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))


__all__ = ["CONTENDERS", "bench", "random_inputs", "relative_error", "workers"]
