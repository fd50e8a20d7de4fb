"""Count what placement saves, as a table: rOperators, the bytes they move, rTasks and waits, before and after."""

import argparse
import sys
from dataclasses import replace

from tvm_rammer import relay_passes
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import find_regions
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.device import DeviceSpec
from tvm_rammer.ir import Copies, RProgram
from tvm_rammer.wavefront import schedule
from tvm_rammer.zoo.models import MODELS, model_names

DEFAULT = "SqueezeNet,Inception v1,DenseNet-121,LSTM 8 x 8 x 256"
MIB = 1 << 20


def planned(record: Compilation, copies: Copies) -> list[RProgram]:
    """The programs of all regions."""
    units = record.device.units
    return [
        program
        for graph in record.graphs
        for program in schedule(graph, record.kernels, record.device, veus=units, copies=copies)
    ]


def moved_bytes(programs: list[RProgram]) -> int:
    """What all rOperators read and write, each buffer of each once: weights count, too."""
    return sum(
        program.graph.buffers[b].nbytes
        for program in programs
        for op in program.graph.operators
        for b in (*dict.fromkeys(op.inputs), *op.outputs)
    )


def row(name: str, device: DeviceSpec) -> str:
    """A line of the table: each figure before and after; the last one is what the plan is predicted to take."""
    record = Compilation(device)
    find_regions(relay_passes.prepare(tvm_target(device))(relay_passes.load_model(MODELS[name]())), record)
    before, after = planned(record, {}), planned(record, record.copies)
    figures = [
        [str(sum(len(p.graph.operators) for p in programs)) for programs in (before, after)],
        [f"{moved_bytes(programs) / MIB:.2f}" for programs in (before, after)],
        [f"{sum(p.workspace_bytes for p in programs) / MIB:.2f}" for programs in (before, after)],
        [str(sum(k.num_rtasks for p in programs for k in p.kernels)) for programs in (before, after)],
        [str(sum(p.waits() for p in programs)) for programs in (before, after)],
        [f"{sum(p.makespan_us for p in programs):.0f}" for programs in (before, after)],
    ]
    return f"| {name} | " + " | ".join(f"{old} -> {new}" for old, new in figures) + " |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cpu", metavar="T")
    parser.add_argument("--units", type=int, metavar="N", help="vEUs, if not as many as the device has")
    parser.add_argument(
        "--models", default=model_names(DEFAULT), type=model_names, metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    arguments = parser.parse_args()
    device = resolve_device(arguments.target)
    print("| model | rOperators | MiB moved | MiB of workspace | rTasks | waits | predicted, us |")
    print("|---" * 7 + "|", flush=True)
    for name in arguments.models:
        print(row(name, replace(device, units=arguments.units or device.units)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
