"""Other engines on this machine's CPU; importing this imports neither them nor TVM."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

PACKAGES = ("onnxruntime", "openvino")
"""Contenders that are packages of their own, which need not be installed."""

Runner = Callable[[Sequence[np.ndarray]], Sequence[Any]]
"""Runs a model on inputs."""


def onnxruntime_session(model: str | bytes, threads: int) -> Any:
    """Open a model in ONNX Runtime on this machine's CPU.

    Parameters
    ----------
    model : str or bytes
        The path of an ONNX file, or its contents.
    threads : int
        Threads within an operator; operators run one after another.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def openvino_runner(model: str | bytes, threads: int, cache: str = "") -> Runner:
    """Make a contender of a model in OpenVINO on this machine's CPU, in float32 as the others.

    Parameters
    ----------
    model : str or bytes
        The path of an ONNX file, or its contents.
    threads : int
    cache : str
        A folder for what OpenVINO compiles (`CACHE_DIR`); by default it keeps nothing.
    """
    import openvino

    hints = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    core = openvino.Core()
    if cache:
        core.set_property({"CACHE_DIR": cache})
    # From a file that is cached OpenVINO reads nothing but its cache.
    source = model if cache and isinstance(model, str) else core.read_model(model)
    compiled = core.compile_model(source, "CPU", hints)
    request = compiled.create_infer_request()

    def run(arrays: Sequence[np.ndarray]) -> Sequence[Any]:
        request.infer(dict(enumerate(arrays)), share_inputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run
