"""A process that answers once: `python -m tvm_rammer.benchmark.first_answer ENGINE MODEL INPUTS RESULTS THREADS CACHE`.

It says "answered" as soon as it has the results, and then writes them. Nothing is imported that the engine does not
need. CACHE may be left out.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from .peers import onnxruntime_session, openvino_runner

Answer = Callable[[str, Mapping[str, np.ndarray], int, str], Sequence[Any]]


def main(engine: str, model: str, inputs: str, results: str, threads: str, cache: str = "") -> None:
    """Answer, and write the results."""
    with np.load(inputs) as file:
        given = {name: file[name] for name in file.files}
    found = ENGINES[engine](model, given, int(threads), cache)
    sys.stdout.write("answered\n")
    sys.stdout.flush()
    np.savez(results, *found)


def _rammer(model: str, inputs: Mapping[str, np.ndarray], threads: int, cache: str) -> Sequence[Any]:
    import tvm_rammer

    return tvm_rammer.compile(model, threads=threads, cache=cache or False).run(None, inputs)


def _saved(model: str, inputs: Mapping[str, np.ndarray], _threads: int, _cache: str) -> Sequence[Any]:
    import tvm_rammer

    return tvm_rammer.load(model).run(None, inputs)


def _onnxruntime(model: str, inputs: Mapping[str, np.ndarray], threads: int, _cache: str) -> Sequence[Any]:
    results: Sequence[Any] = onnxruntime_session(model, threads).run(None, inputs)
    return results


def _openvino(model: str, inputs: Mapping[str, np.ndarray], threads: int, cache: str) -> Sequence[Any]:
    return openvino_runner(model, threads, cache)(list(inputs.values()))


ENGINES: Mapping[str, Answer] = MappingProxyType(
    {"rammer": _rammer, "rammer-saved": _saved, "onnxruntime": _onnxruntime, "openvino": _openvino}
)


if __name__ == "__main__":
    main(*sys.argv[1:])
