"""What a loop saves where a file has a recurrent layer unrolled: the LSTM as a loop, unrolled here, and by the file.

The three take turns. Compiling is in processor seconds.
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


def compiled(model: onnx.ModelProto, *, loops: bool = True) -> tuple[Any, float]:
    """A module, and the processor seconds that it took."""
    begun = time.process_time()
    return tvm_rammer.compile(model, cache=False, loops=loops), time.process_time() - begun


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


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1x50x128,1x200x128,2x200x64,2x200x256", metavar="LxNxH,...")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement (default: 0.1)")
    parser.add_argument("--rounds", type=int, default=10, help="measurements of each (default: 10)")
    args = parser.parse_args()
    print(
        "| layers x steps x units | loop: compiled in s, ms | unrolled here | unrolled in the file |\n|---|---|---|---|"
    )
    compiled(onnx_lstm(1, 2, 16))  # what is loaded once is no part of the first row
    for size in args.sizes.split(","):
        layers, steps, hidden = map(int, size.split("x"))
        looped, stacked = onnx_lstm(layers, steps, hidden), lstm_stack(layers, steps, hidden)
        made = {"loop": compiled(looped), "here": compiled(looped, loops=False), "file": compiled(stacked)}
        found = milliseconds({name: module for name, (module, _) in made.items()}, args.seconds, args.rounds)
        print(f"| {size} | {' | '.join(f'{made[n][1]:.1f}, {ms:.2f}' for n, ms in found.items())} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
