"""What rolling up saves where a file has recurrent layers unrolled, against an LSTM node of the same sizes.

An LSTM node is a loop, or unrolled here. One file has an input for each step, the other writes cells as PyTorch's
exporter does, with slices of one input: each is rolled up, or stays. All take turns. Compiling is in processor
seconds; a call on one thread is, too, the fastest of all.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.onnx_lstm import onnx_lstm
from tvm_rammer.zoo.onnx_tools.graph import OnnxGraph

NAMES = (
    "LSTM, a loop",
    "LSTM, unrolled",
    "inputs, rolled up",
    "inputs, as in the file",
    "cells, rolled up",
    "cells, as in the file",
)


def compiled(model: onnx.ModelProto, threads: int, *, loops: bool = True) -> tuple[Any, float]:
    """A module, and the processor seconds that it took."""
    begun = time.process_time()
    module = tvm_rammer.compile(model, cache=False, loops=loops, threads=threads)
    return module, time.process_time() - begun


def busy_milliseconds(modules: Mapping[str, Any], rounds: int) -> dict[str, float]:
    """The processor time of a call of each: the fastest of some."""
    given = {name: [np.zeros(spec.shape, spec.dtype) for spec in module.inputs] for name, module in modules.items()}
    times: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(20 * rounds):
        for name, module in modules.items():
            begin = time.process_time()
            module(*given[name])
            times[name].append((time.process_time() - begin) * 1e3)
    return {name: min(found) for name, found in times.items()}


def milliseconds(modules: Mapping[str, Any], seconds: float, rounds: int) -> dict[str, float]:
    """The time of a call of each: the median of the quieter half of the rounds."""
    given = {name: [np.zeros(spec.shape, spec.dtype) for spec in module.inputs] for name, module in modules.items()}
    times: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(rounds + 1):  # the first one warms up
        for name, module in modules.items():
            count, begin = 0, time.perf_counter()
            while (passed := time.perf_counter() - begin) < seconds:
                module(*given[name])
                count += 1
            times[name].append(passed / count * 1e3)
    return {name: statistics.median(sorted(found[1:])[: -(-rounds // 2)]) for name, found in times.items()}


def cells(layers: int, steps: int, hidden: int) -> onnx.ModelProto:
    """A loop over LSTM cells as PyTorch's exporter writes it: a slice of `x` and two Gemms in each step."""
    graph, below = OnnxGraph(), []
    for t in range(steps):
        below.append(graph.node("Gather", ["x", graph.weight(f"t{t}", np.array(t))], f"x{t}", axis=0))
    for layer in range(layers):
        weights = [graph.weight(f"{n}{layer}", graph.he((4 * hidden, hidden), 4 * hidden)) for n in ("wx", "wh")]
        biases = [graph.weight(f"{n}{layer}", graph.small(4 * hidden)) for n in ("bx", "bh")]
        h, c = "h0", "c0"
        for t, x in enumerate(below):
            at = f"_{layer}_{t}"
            gemms = [
                graph.node("Gemm", [read, w, b], f"{name}{at}", transB=1)
                for read, w, b, name in zip((x, h), weights, biases, ("of_x", "of_h"), strict=True)
            ]
            total = graph.node("Add", gemms, f"total{at}")
            i, f, g, o = graph.nodes("Split", [total], [f"{gate}{at}" for gate in "ifgo"], axis=1)
            i, f, o = (graph.node("Sigmoid", [gate], f"{gate}_on") for gate in (i, f, o))
            new = graph.node("Mul", [i, graph.node("Tanh", [g], f"{g}_on")], f"new{at}")
            c = graph.node("Add", [graph.node("Mul", [f, c], f"kept{at}"), new], f"state{at}")
            h = graph.node("Mul", [o, graph.node("Tanh", [c], f"{c}_on")], f"h{at}")
            below[t] = h
    state = (1, hidden)
    return graph.model("cells", {"x": (steps, *state), "h0": state, "c0": state}, {h: state})


def variants(layers: int, steps: int, hidden: int, threads: int) -> dict[str, tuple[Any, float]]:
    """The modules by `NAMES`, each with what compiling took."""
    models = onnx_lstm(layers, steps, hidden), lstm_stack(layers, steps, hidden), cells(layers, steps, hidden)
    found = [compiled(model, threads, loops=loops) for model in models for loops in (True, False)]
    return dict(zip(NAMES, found, strict=True))


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1x50x128,1x200x128,2x200x64,2x200x256", metavar="LxNxH,...")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement (default: 0.1)")
    parser.add_argument("--rounds", type=int, default=10, help="measurements of each (default: 10)")
    parser.add_argument(
        "--threads", type=int, default=2, help="of each module; of 1 processor time counts (default: 2)"
    )
    args = parser.parse_args()
    print(f"| layers x steps x units | {' | '.join(f'{name}: compiled in s, ms' for name in NAMES)} |")
    print("|---" * (len(NAMES) + 1) + "|")
    compiled(onnx_lstm(1, 2, 16), args.threads)  # what is loaded once is no part of the first row
    for size in args.sizes.split(","):
        layers, steps, hidden = map(int, size.split("x"))
        made = variants(layers, steps, hidden, args.threads)
        modules = {name: module for name, (module, _) in made.items()}
        if args.threads == 1:
            found = busy_milliseconds(modules, args.rounds)
        else:
            found = milliseconds(modules, args.seconds, args.rounds)
        print(f"| {size} | {' | '.join(f'{made[n][1]:.1f}, {ms:.2f}' for n, ms in found.items())} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
