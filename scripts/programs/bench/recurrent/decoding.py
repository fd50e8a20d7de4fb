"""Decoders whose loop the data end: in one rProgram, each round a call, and ONNX Runtime.

The contenders take turns (`tvm_rammer.benchmark.race`), and must agree. Compiling is in processor seconds.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer.benchmark.peers import Runner, onnxruntime_session
from tvm_rammer.benchmark.race import race
from tvm_rammer.zoo.open_shapes.decoder import decoder

NAMES = ("token", "h", "end", "limit")


def compiled(model: onnx.ModelProto, threads: int, loops: bool) -> tuple[Runner, float]:
    """A module, and the processor seconds that it took."""
    begun = time.process_time()
    module: Any = tvm_rammer.compile(model, threads=threads, loops=loops, cache=False)
    took = time.process_time() - begun
    return lambda arrays: module.run(None, dict(zip(NAMES, arrays, strict=True))), took


def rows(hidden: int, tokens: int, counts: list[int], threads: int) -> None:
    """Print the rows of a model."""
    model = decoder(hidden, tokens)
    inside, took = compiled(model, threads, loops=True)
    calls, calls_s = compiled(model, threads, loops=False)
    session = onnxruntime_session(model.SerializeToString(), threads)
    by_name = [output.name for output in model.graph.output]
    runners: dict[str, Runner] = {
        "inside": inside,
        "calls": calls,
        "onnxruntime": lambda arrays: session.run(by_name, dict(zip(NAMES, arrays, strict=True))),
    }
    h = np.random.default_rng(1).standard_normal((1, hidden)).astype(np.float32)
    for count in counts:
        given = [np.array([3]), h, np.array([-1]), np.array(count)]
        found = {key: samples.summary()["median_ms"] for key, samples in race(runners, given, 20).items()}
        times = " | ".join(f"{found[key]:.3f} ({found[key] / found['inside']:.2f})" for key in ("calls", "onnxruntime"))
        print(
            f"| {hidden} | {tokens} | {count} | {took:.1f} | {found['inside']:.3f} | {calls_s:.1f} | {times} |",
            flush=True,
        )


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", default="32,128,256", metavar="N,N")
    parser.add_argument("--tokens", type=int, default=64, metavar="N", help="in the vocabulary")
    parser.add_argument("--counts", default="1,10,64,200", metavar="N,N", help="how many tokens are named")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    args = parser.parse_args()
    print(
        "| units | vocabulary | rounds | compiled in s | ms | each round a call, compiled in s | ms (times) "
        "| ONNX Runtime ms (times) |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for hidden in map(int, args.hidden.split(",")):
        rows(hidden, args.tokens, [int(count) for count in args.counts.split(",")], args.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
