"""One engine in a process of its own: `python -m tvm_rammer.benchmark.engine ENGINE MODEL.onnx THREADS RESULT.npz`.

It compiles the model, writes the results of a first run, and says "ready". Then for each line of standard input, a
number of seconds, it calls the model for so long, and answers with the times of the calls in milliseconds, as JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx

from .peers import onnxruntime_session, openvino_runner

FEWEST_CALLS = 20
"""Calls of a measurement at least, however long they take."""

Call = Callable[[], list[np.ndarray]]


def main(engine: str, model: str, threads: str, result: str) -> None:
    """Serve until standard input ends."""
    call = ENGINES[engine](model, int(threads))
    with open(result, "wb") as file:
        np.savez(file, *call())
    _say("ready")
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times: list[float] = []
        while time.perf_counter() < end or len(times) < FEWEST_CALLS:
            started = time.perf_counter()
            call()
            times.append((time.perf_counter() - started) * 1e3)
        _say(json.dumps(times))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def inputs_of(model: str) -> dict[str, np.ndarray]:
    """The same seeded inputs for every engine; float32 models of static shapes."""
    graph, rng = onnx.load(model).graph, np.random.default_rng(0)
    weights = {w.name for w in graph.initializer}
    return {
        i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in graph.input
        if i.name not in weights
    }


def _rammer(model: str, threads: int) -> Call:
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import tvm_rammer

    module, inputs = tvm_rammer.compile(model, cache=False), inputs_of(model)
    return lambda: _as_list(module(**inputs))


def _onnxruntime(model: str, threads: int) -> Call:
    session, inputs = onnxruntime_session(model, threads), inputs_of(model)
    return lambda: _as_list(session.run(None, inputs))


def _openvino(model: str, threads: int) -> Call:
    run, inputs = openvino_runner(model, threads), list(inputs_of(model).values())
    return lambda: _as_list(run(inputs))


ENGINES: Mapping[str, Callable[[str, int], Call]] = MappingProxyType(
    {"rammer": _rammer, "onnxruntime": _onnxruntime, "openvino": _openvino}
)


def _as_list(result: Any) -> list[np.ndarray]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


if __name__ == "__main__":
    main(*sys.argv[1:])
