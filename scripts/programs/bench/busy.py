"""Models on one thread of each engine, by processor time: for a machine that other processes keep busy.

Engines take turns, and the fastest run of each counts: what others do to the caches only makes runs slower.
"""

import argparse
import importlib.util
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Sequence

os.environ["TVM_NUM_THREADS"] = "1"

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer.benchmark.peers import Runner, onnxruntime_session, openvino_runner
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.runtime.tensors import random_inputs
from tvm_rammer.zoo.models import MODELS, model_names

PEERS = ("onnxruntime", "openvino")
NAMES = "SqueezeNet,Inception v1,Inception v3,ResNet-50,DenseNet-121,ResNeXt-29 (grouped)"
TURN = 2
"""Runs of an engine in a row: the first one finds its weights in no cache."""


def runners_of(path: pathlib.Path, module: tvm_rammer.RammerModule) -> dict[str, Runner]:
    """Ours, and the peers that are installed."""

    def ours(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        result = module(*arrays)
        return list(result) if isinstance(result, tuple | list) else [result]

    found: dict[str, Runner] = {"rammer": ours}
    if importlib.util.find_spec("onnxruntime"):
        session = onnxruntime_session(str(path), 1)
        names = [i.name for i in session.get_inputs()]
        found["onnxruntime"] = lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))
    if importlib.util.find_spec("openvino"):
        found["openvino"] = openvino_runner(str(path), 1)
    return found


def row(name: str, seconds: float) -> str:
    """A line of the table."""
    model = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(model, path)
        module = tvm_rammer.compile(model, threads=1)
        runners, inputs = runners_of(path, module), random_inputs(module.inputs, seed=0)
        results = {engine: run(inputs) for engine, run in runners.items()}
        best = dict.fromkeys(runners, float("inf"))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for engine, run in runners.items():
                for _ in range(TURN):
                    begin = time.process_time()
                    run(inputs)
                    best[engine] = min(best[engine], (time.process_time() - begin) * 1e3)
    ours, error = best["rammer"], 0.0
    for result in results.values():
        error = max(error, *(relative_error(a, b) for a, b in zip(results["rammer"], result, strict=True)))
    ratios = [f"{best[peer] / ours:.2f}" if peer in best else "-" for peer in PEERS]
    return f"| {name} | {ours:.2f} | {' | '.join(ratios)} | {error:.0e} |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=model_names, default=NAMES, metavar="A,B", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="for each model")
    arguments = parser.parse_args()
    print("| model | ours, ms | " + " | ".join(f"{peer}, times ours" for peer in PEERS) + " | differ by |")
    print("|---" * (3 + len(PEERS)) + "|", flush=True)
    for name in arguments.models:
        print(row(name, arguments.seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
