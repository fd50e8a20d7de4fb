"""Plan models with each policy and print the predicted times as a Markdown table: see `scripts/bench`."""

import argparse
import pathlib
import sys
import tempfile
import time

import onnx

from tvm_rammer import relay_passes
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import find_regions
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.device import DeviceSpec
from tvm_rammer.wavefront import POLICIES, lower_bound, place_views, schedule
from tvm_rammer.zoo.models import MODELS, model_names, names_of


def prepared(name: str, device: DeviceSpec) -> Compilation:
    """A model's graphs and rKernels, not yet planned."""
    record = Compilation(device)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        onnx.save(MODELS[name](), path)
        mod = relay_passes.load_model(path)
    find_regions(relay_passes.prepare(tvm_target(device))(mod), record)
    return record


def row(name: str, device: DeviceSpec, policies: list[str]) -> str:
    """A line of the table: the largest region, its bound, and what each policy needs: time, gap, seconds to plan."""
    record = prepared(name, device)
    graph = max(record.graphs, key=lambda g: len(g.operators))
    placed = place_views(graph, record.copies)
    bound = lower_bound(placed, record.kernels, device, veus=device.units)
    cells = [name, str(len(placed.operators)), f"{bound.best_us:.1f}"]
    for policy in policies:
        start = time.process_time()
        programs = schedule(graph, record.kernels, device, veus=device.units, policy=policy, copies=record.copies)
        seconds = time.process_time() - start
        makespan = sum(program.makespan_us for program in programs)
        cells.append(f"{makespan:.1f} (+{100 * bound.gap(programs):.0f} %, {seconds:.1f} s)")
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda:h200", metavar="T")
    parser.add_argument(
        "--models", type=model_names, default=",".join(MODELS), metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    parser.add_argument("--policies", type=names_of("policies", POLICIES), default=",".join(POLICIES), metavar="A,B")
    arguments = parser.parse_args()
    policies = arguments.policies
    print("| model | rOperators | bound, us | " + " | ".join(f"{p}, us" for p in policies) + " |")
    print("|---" * (3 + len(policies)) + "|", flush=True)
    for name in arguments.models:
        print(row(name, resolve_device(arguments.target), policies), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
