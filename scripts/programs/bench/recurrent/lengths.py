"""Speech models of any length: one compilation for all lengths, a module of each length alone, and ONNX Runtime.

The contenders of a length take turns (`tvm_rammer.benchmark.race`), and must agree. Compiling is in processor seconds.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer.benchmark.peers import Runner, onnxruntime_session
from tvm_rammer.benchmark.race import race
from tvm_rammer.open_shapes.module import SymbolicModule
from tvm_rammer.zoo.open_shapes.speech import speech

FRAME, MOST = 40, 500
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "LSTM 2 x n x 128, both ways": partial(speech, FRAME, 128, 32),
    "LSTM 1 x n x 256, both ways": partial(speech, FRAME, 256, 32, 1),
    "GRU 2 x n x 128, both ways": partial(speech, FRAME, 128, 32, 2, "GRU"),
}


def compiled(model: onnx.ModelProto, threads: int, length: int | tuple[int, int]) -> tuple[Any, float]:
    """A module, and the processor seconds that it took."""
    begun = time.process_time()
    module = tvm_rammer.compile(model, shapes={"time": length}, threads=threads, cache=False)
    if isinstance(module, SymbolicModule):
        module.prepare({"time": MOST})
    return module, time.process_time() - begun


def runner(module: Any) -> Runner:
    """Call a module."""
    return lambda arrays: list(module(*arrays))


def onnxruntime_runner(session: Any) -> Runner:
    """Run a session, which takes all lengths."""
    return lambda arrays: session.run(None, {"x": arrays[0]})


def rows(name: str, lengths: Sequence[int], threads: int) -> None:
    """Print the rows of a model."""
    model = MODELS[name]()
    every, took = compiled(model, threads, (1, MOST))
    session = onnxruntime_session(model.SerializeToString(), threads)
    for length in lengths:
        alone, alone_s = compiled(model, threads, length)
        x = np.random.default_rng(length).standard_normal((length, 1, FRAME)).astype(np.float32)
        runners = {"all": runner(every), "own": runner(alone), "onnxruntime": onnxruntime_runner(session)}
        found = {key: samples.summary()["median_ms"] for key, samples in race(runners, [x], 20).items()}
        times = " | ".join(f"{found[key]:.3f} ({found[key] / found['all']:.2f})" for key in ("own", "onnxruntime"))
        print(f"| {name} | {length} | {took:.1f} | {found['all']:.3f} | {alone_s:.1f} | {times} |", flush=True)


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose names contain it")
    parser.add_argument("--lengths", default="1,10,100,500", metavar="N,N")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    args = parser.parse_args()
    names = [name for name in MODELS if args.only in name]
    if not names:
        parser.error(f"no model's name contains {args.only!r}; there are {', '.join(MODELS)}")
    print(
        "| model | n | compiled for all in s | ms | compiled for n in s | ms (times that for all) "
        "| ONNX Runtime ms (times that for all) |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        rows(name, [int(length) for length in args.lengths.split(",")], args.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
