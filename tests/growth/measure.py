"""What compiling long models takes: one process for those of a kind, shorter ones first, for the peak of its memory."""

import multiprocessing
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .models import long_model


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was measured.

    Parameters
    ----------
    operators : int
        rOperators of the plan.
    seconds : float
        Processor time of the compilation.
    megabytes : float
        What the peak of the process has grown by, since before the first.
    error : float
        The largest difference from ONNX Runtime, relative to numbers above 1; infinity where one is NaN alone.
    """

    operators: int
    seconds: float
    megabytes: float
    error: float


def compiled(kind: str, lengths: Sequence[int]) -> list[Compiled]:
    """Compile models of growing lengths in a new process, run each once, and compare."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_compiled, (kind, lengths))


def _compiled(kind: str, lengths: Sequence[int]) -> list[Compiled]:
    import tvm_rammer

    tvm_rammer.compile(long_model("Relu", 3)[0], cache=False)  # what is loaded and made once
    models = [long_model(kind, length) for length in lengths]
    modules, before = [], _peak()
    costs = []
    for proto, _ in models:
        start = time.process_time()
        modules.append(tvm_rammer.compile(proto, loops="unrolled" not in kind, cache=False))
        costs.append((time.process_time() - start, _peak() - before))
    return [
        Compiled(module.report()["roperators"], *cost, _error(module, proto, inputs))
        for module, cost, (proto, inputs) in zip(modules, costs, models, strict=True)
    ]


def _error(module, proto, inputs) -> float:
    results = module(**inputs)
    results = results if isinstance(results, list | tuple) else [results]
    return max(_difference(got, want) for got, want in zip(results, _by_onnxruntime(proto, inputs), strict=True))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _difference(got: np.ndarray, want: np.ndarray) -> float:
    got, want = np.asarray(got, "float64"), np.asarray(want, "float64")
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        found = np.where(same, 0.0, np.abs(got - want) / np.maximum(1.0, np.abs(want)))
    return float(np.nan_to_num(found, nan=np.inf).max())


def _by_onnxruntime(proto, inputs) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, inputs)
