"""What compiling a long model takes: each in a process of its own, so that its peak memory is its own."""

import multiprocessing
import resource
import time
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
        What it added to the peak of the process.
    error : float
        The largest difference from ONNX Runtime, relative to numbers above 1; infinity where one is NaN alone.
    """

    operators: int
    seconds: float
    megabytes: float
    error: float


def compiled(kind: str, length: int) -> Compiled:
    """Compile a long model in a new process, run it once, and compare."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_compiled, (kind, length))


def _compiled(kind: str, length: int) -> Compiled:
    import tvm_rammer

    tvm_rammer.compile(long_model("Relu", 3)[0], cache=False)  # what is loaded and made once
    proto, inputs = long_model(kind, length)
    before, start = _peak(), time.process_time()
    module = tvm_rammer.compile(proto, loops="unrolled" not in kind, cache=False)
    seconds, megabytes = time.process_time() - start, _peak() - before
    results = module(**inputs)
    results = results if isinstance(results, list | tuple) else [results]
    error = max(_difference(got, want) for got, want in zip(results, _by_onnxruntime(proto, inputs), strict=True))
    return Compiled(module.report()["roperators"], seconds, megabytes, error)


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
