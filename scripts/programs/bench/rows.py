"""What it would save to make one rTask of operators that follow each other on a vEU: rows, bytes, and their price.

A pair counts where a lane runs rTasks of two operators one after the other without a wait between, and nobody but the
second reads what the first writes. The price of a row is measured: models of more and fewer tiny operators, on one vEU.
"""

import argparse
import sys
import time
from dataclasses import replace

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer import relay_passes
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import find_regions
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.device import measured_cpu
from tvm_rammer.ir import Lane, RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import schedule
from tvm_rammer.zoo.models import MODELS, model_names
from tvm_rammer.zoo.onnx_tools.graph import OnnxGraph

NAMES = "LSTM 8 x 8 x 256,Transformer 2 x 32 x 128,ShuffleNet,DenseNet-121,NASNet-A"
FEW, MANY, CALLS = 20, 420, 20_000


def chain(length: int) -> onnx.ModelProto:
    """Operators of four elements, one after another."""
    graph, name = OnnxGraph(), "x"
    for n in range(length):
        name = graph.node("Softmax", [name], f"s{n}", axis=-1)
    return graph.model("chain", {"x": (1, 4)}, {name: (1, 4)})


def fastest_us(model: onnx.ModelProto) -> float:
    """Microseconds of the fastest of many calls, on one vEU."""
    module, x, best = tvm_rammer.compile(model, threads=1, cache=False), np.ones((1, 4), np.float32), float("inf")
    for _ in range(CALLS):
        begin = time.perf_counter()
        module(x)
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def pairs_of(program: RProgram, lane: Lane) -> list[int]:
    """The bytes that pass from one rTask to the next, for each pair of a lane."""
    graph, found = program.graph, []
    readers: dict[int, set[int]] = {}
    for o, op in enumerate(graph.operators):
        for b in op.inputs:
            readers.setdefault(b, set()).add(o)
    last: Run | None = None
    for instruction in lane:
        if isinstance(instruction, Wait):
            last = None
        elif isinstance(instruction, Run):
            if last is not None:
                made = graph.operators[last.operator].outputs
                if all(readers.get(b) == {instruction.operator} for b in made):
                    share = last.count / program.kernels[last.operator].num_rtasks
                    found.append(round(sum(graph.buffers[b].nbytes for b in made) * share))
            last = instruction
    return found


def row(name: str, row_us: float) -> str:
    """A line of the table: what is saved is of the longer lane."""
    device = replace(measured_cpu(), units=2)
    record = Compilation(device)
    find_regions(relay_passes.prepare(tvm_target(device))(relay_passes.load_model(MODELS[name]())), record)
    graph = max(record.graphs, key=lambda g: len(g.operators))
    (program,) = schedule(graph, record.kernels, device, veus=device.units, copies=record.copies)
    counts = [sum(isinstance(i, kind) for lane in program.lanes for i in lane) for kind in (Run, Wait, Signal)]
    pairs = [pairs_of(program, lane) for lane in program.lanes]
    saved_us = max(map(len, pairs)) * row_us
    return (
        f"| {name} | {len(program.graph.operators)} | {' | '.join(map(str, counts))} | {sum(map(len, pairs))} | "
        f"{sum(map(sum, pairs)) / 1024:.0f} | {saved_us:.1f} | {program.makespan_us:.0f} | "
        f"{100 * saved_us / program.makespan_us:.1f} % |"
    )


def main() -> int:
    """Print the price of a row, and the table; every line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=model_names, default=NAMES, metavar="A,B")
    arguments = parser.parse_args()
    row_us = (fastest_us(chain(MANY)) - fastest_us(chain(FEW))) / (MANY - FEW)
    print(f"A row of a tiny operator takes {1e3 * row_us:.0f} ns, its softmax of four elements included.\n")
    print(
        "| model | rOperators | runs | waits | signals | pairs | KiB between | rows saved, us | predicted, us | share |"
    )
    print("|---" * 10 + "|", flush=True)
    for name in arguments.models:
        print(row(name, row_us), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
