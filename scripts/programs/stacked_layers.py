"""Print what stacked recurrent layers are predicted to take: as one loop, as a loop for each layer, and unrolled."""

import argparse
import time

import onnx

from tvm_rammer.compilation.guard import guarded
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import plan_regions
from tvm_rammer.compilation.stages import find_kernels
from tvm_rammer.device import DeviceSpec, host_cpu, preset
from tvm_rammer.ir import Run
from tvm_rammer.relay_passes import load_model
from tvm_rammer.zoo.onnx_lstm import GATES, onnx_lstm

WAYS = {"one loop": (True, True), "a loop each": (True, False), "unrolled": (False, False)}
"""Whether layers stay loops, and whether these become one."""

HEAD = f"""| layers x steps x units | {" | ".join(f"{way}, us (planned in s)" for way in WAYS)} | KiB on chip |
|---|{"---|" * len(WAYS)}---|"""


def planned(model: onnx.ModelProto, device: DeviceSpec, way: str) -> tuple[Compilation, float]:
    """The plans of a model, and the processor seconds that they took; no code is generated."""
    loops, join = WAYS[way]
    begun = time.process_time()
    record = Compilation(device)
    mod = load_model(model, loops=loops, join=join)
    with guarded(mod):
        plan_regions(find_kernels(mod, record), record)
    return record, time.process_time() - begun


def line(sizes: tuple[int, int, int], kind: str, bidirectional: bool, device: DeviceSpec) -> str:
    """A row of the table."""
    model = onnx_lstm(*sizes, kind=kind, bidirectional=bidirectional)
    columns = [" x ".join(map(str, sizes))]
    kept = 0
    for way in WAYS:
        record, seconds = planned(model, device, way)
        columns.append(f"{sum(program.makespan_us for program in record.programs):.0f} ({seconds:.1f})")
        kept = kept or sum(_bytes_kept(record))
    return f"| {' | '.join(columns)} | {kept / 1024:.0f} |"


def _bytes_kept(record: Compilation) -> list[int]:
    """For each run what its vEU keeps of the weights that it reads."""
    runs = ((program, i) for program in record.programs for _, _, i in program.instructions() if isinstance(i, Run))
    return [
        run.count * slices.nbytes
        for program, run in runs
        if run.kept is not None and (slices := program.kernels[run.operator].slices)
    ]


def main() -> None:
    """Read the command line, plan, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=_sizes, metavar="LAYERSxSTEPSxUNITS")
    parser.add_argument("--kind", choices=tuple(GATES), default="LSTM")
    parser.add_argument("--bidirectional", action="store_true", help="each layer goes both ways")
    parser.add_argument("--target", default="cuda:h200", help="a GPU by name (cuda:h200), or cpu")
    options = parser.parse_args()
    device = host_cpu() if options.target == "cpu" else preset(options.target)
    print(HEAD)
    for sizes in options.models:
        print(line(sizes, options.kind, options.bidirectional, device), flush=True)


def _sizes(text: str) -> tuple[int, int, int]:
    layers, steps, units = map(int, text.split("x"))
    return layers, steps, units


if __name__ == "__main__":
    main()
