"""Compare a compiled model with others, fairly: interleaved in one process, on the same number of threads."""

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import tvm

from .. import driver, relay_passes
from ..arguments import magnitude, whole
from ..compilation.record import Compilation
from ..compilation.regions import plan_regions
from ..compilation.stages import build, find_kernels
from ..compilation.target import tvm_target
from ..errors import ModelError, last_line
from ..open_shapes.module import as_static
from ..persistent_codegen import num_workers
from ..relay_passes.aten.read import is_program_file
from ..runtime.module import RammerModule
from ..runtime.tensors import random_inputs
from .peers import PACKAGES, Runner, onnxruntime_session, openvino_runner
from .race import MOST_DIFFERENCE, arrays_of, difference, race, tvm_runner
from .torch_compiled import torch_runner

PEERS = (*PACKAGES, "torch")
"""Contenders that are other packages."""
CONTENDERS = ("stock", "stock-same-kernels", *PEERS)


def bench(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    target: str = "cpu",
    against: Sequence[str] = ("stock",),
    shapes: Mapping[str, Sequence[int]] | None = None,
    repeat: int = 50,
    policy: str = "auto",
    sync: str = "auto",
    tuning_logs: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    seed: int = 0,
    tolerance: float = MOST_DIFFERENCE,
    progress: Callable[[str], None] = lambda message: None,
) -> dict[str, Any]:
    """Time a model against contenders.

    Parameters
    ----------
    model : path or onnx.ModelProto
    target : str
        Where our side runs; the contenders run on the same device.
    against : sequence of str
        Some of `CONTENDERS`. `stock` is TVM's default build; `stock-same-kernels` launches our kernels one
        by one through the stock VM; `onnxruntime` and `openvino` need these packages, and so does `torch`, which is
        the model's operators in PyTorch, compiled by `torch.compile`.
    shapes : mapping of str to sequence of int, optional
    repeat : int
        Runs of each contender.
    policy, sync, tuning_logs, threads
        As in `tvm_rammer.compile`.
    seed : int
        Of the random inputs.
    tolerance : float
        How far results may be from one another, relative to the largest magnitude. A model that rounds to bytes
        while it runs needs more than others: a last bit decides which byte it is.
    progress : callable
        Gets a message before each step.

    Returns
    -------
    dict
        `model`, `target`, `threads`, `results` and `ratios` by contender (a ratio is the contender's median
        over ours), `missing` (by contender, why it was not timed: it is not installed, cannot run the model, or
        finds something else than ours and another one), `report`.

    Raises
    ------
    ModelError
        An unknown contender, `repeat` or `tolerance` outside of its range, a dimension without a size, or results that
        differ by more than `tolerance` from those of all contenders.
    """
    unknown = [name for name in against if name not in CONTENDERS]
    if unknown:
        raise ModelError(f"unknown contenders {', '.join(unknown)}; choose from {', '.join(CONTENDERS)}")
    whole("repeat", repeat, 1)
    magnitude("tolerance", tolerance)
    progress("compiling with Rammer")
    compiled = driver.compile(
        model,
        target=target,
        shapes=shapes,
        policy=policy,
        sync=sync,
        tuning_logs=tuning_logs,
        threads=threads,
        cache=False,
    )
    module = as_static(compiled)
    inputs = random_inputs(module.inputs, seed)
    runners: dict[str, Runner] = {"rammer": tvm_runner(module.executable, module.runtime_device())}
    outputs, missing = {"rammer": arrays_of(runners["rammer"](inputs))}, {}
    for name in against:
        if name in PEERS and importlib.util.find_spec(name) is None:
            missing[name] = f"the package {name} is not installed"
            continue
        progress(f"building {name}")
        try:
            runner = _contender(name, model, shapes, tuning_logs, module)
            outputs[name] = arrays_of(runner(inputs))
        except Exception as error:
            if name not in PEERS or isinstance(error, ModelError):
                raise
            missing[name] = f"it cannot run the model: {last_line(error)}"
            continue
        runners[name] = runner
    for name, far in _who_differs(outputs, tolerance).items():
        missing[name] = f"its results differ from those of the others by {far:.1e} of the largest magnitude"
        del runners[name]
    results = {name: s.summary() for name, s in race(runners, inputs, repeat, progress, tolerance=tolerance).items()}
    ours = results["rammer"]["median_ms"]
    return {
        "model": model.graph.name if isinstance(model, onnx.ModelProto) else str(model),
        "target": target,
        "threads": module.compilation.device.units,
        "workers": num_workers(),
        "results": results,
        "ratios": {name: r["median_ms"] / ours for name, r in results.items() if name != "rammer"},
        "missing": missing,
        "report": module.report(),
    }


def _who_differs(outputs: Mapping[str, Sequence[np.ndarray]], tolerance: float) -> dict[str, float]:
    """Who finds something else than ours and another one, and by how much. Nobody, if all differ from ours."""
    errors = {name: difference(found, outputs["rammer"]) for name, found in outputs.items() if name != "rammer"}
    alone = {name: error for name, error in errors.items() if not error <= tolerance}
    return alone if len(alone) < len(errors) else {}


def _contender(
    name: str,
    model: str | os.PathLike[str] | onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None,
    tuning_logs: str | os.PathLike[str] | None,
    module: RammerModule,
) -> Runner:
    if name == "onnxruntime":
        return _onnxruntime_runner(model, module)
    if name == "openvino":
        return openvino_runner(_source(model), module.compilation.device.units)
    if name == "torch":
        return torch_runner(_source(model), module.compilation.device.units)
    ours, mod = module.compilation, relay_passes.load_model(model, shapes)
    if name == "stock":
        return tvm_runner(tvm.compile(mod, tvm_target(ours.device)), module.runtime_device())
    record = Compilation(ours.device, ours.policy, ours.sync, views=False)
    kernelized = find_kernels(mod, record, tuning_logs)
    kernelized = plan_regions(kernelized, record)
    return tvm_runner(build(kernelized, record, single_calls=True), module.runtime_device())


def _source(model: str | os.PathLike[str] | onnx.ModelProto) -> str | bytes:
    """What other engines read: the path of a file, or its contents."""
    if is_program_file(model):
        raise ModelError(f"{str(model)!r} is no ONNX file, which other engines read; leave them out")
    return model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)


def _onnxruntime_runner(model: str | os.PathLike[str] | onnx.ModelProto, module: RammerModule) -> Runner:
    session = onnxruntime_session(_source(model), module.compilation.device.units)
    names = [spec.name for spec in module.inputs]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))
