"""Print the two by two of co-scheduling and kernel selection: see `scripts/ablation`."""

import argparse
import json
import pathlib
import sys
from dataclasses import asdict

import onnx

from tvm_rammer.ablations.interplay import Interplay, agreement, measure_interplay, predict_interplay
from tvm_rammer.ablations.variants import Variants
from tvm_rammer.device import preset
from tvm_rammer.runtime.tensors import TensorSpec, random_inputs
from tvm_rammer.zoo.models import MODELS

NAMES = [name for name in MODELS if name.startswith(("ResNeXt", "LSTM 10", "Inception module"))]
QUICK = [name for name in NAMES if "x 100 x" not in name]
"""Models that are planned within a minute or so; the others take as much longer as they have more steps."""


def main() -> int:
    """Predict for a GPU; with `--measure` also run on the CPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(QUICK), metavar="A,B", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--target", default="cuda:h200", metavar="T", help="the device to plan for")
    parser.add_argument("--measure", action="store_true", help="also measure on this CPU")
    parser.add_argument("--repeat", type=int, default=30, metavar="N", help="runs of each")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    wanted = options.models.split(",")
    if unknown := [name for name in wanted if name not in NAMES]:
        parser.error(f"unknown models {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    print("| model | on | one by one, fastest, ms | one by one, selected | together, fastest | together, selected |")
    print("|---" * 6 + "|", flush=True)
    found = {}
    for name in wanted:
        model = MODELS[name]()
        say(f"{name}: planning for {options.target}")
        variants = Variants(model, preset(options.target))
        found[name] = {options.target: predict_interplay(variants)}
        say(f"{name}: {100 * agreement(variants):.0f} % of the operators have their function's usual kernel")
        print(row(name, f"{options.target}, predicted", found[name][options.target]), flush=True)
        if options.measure:
            here = Variants(model, preset("cpu"))
            found[name]["cpu, predicted"] = predict_interplay(here)
            print(row(name, "CPU, predicted", found[name]["cpu, predicted"]), flush=True)
            found[name]["cpu"] = measure_interplay(here, random_inputs(specs(model), 0), options.repeat, say)
            print(row(name, "CPU, measured", found[name]["cpu"]), flush=True)
    if options.json:
        text = json.dumps({n: {d: asdict(i) for d, i in by.items()} for n, by in found.items()}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


def specs(model: onnx.ModelProto) -> list[TensorSpec]:
    """The inputs of a model of the zoo: float32, of static shapes."""
    shapes = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in model.graph.input}
    return [TensorSpec(name, shape, "float32") for name, shape in shapes.items()]


def row(name: str, device: str, times: Interplay) -> str:
    """A line of the table: the first time in milliseconds, then how many times faster the others are."""
    base, *others = asdict(times).values()
    return f"| {name} | {device} | {base / 1e3:.3f} | " + " | ".join(f"{base / other:.2f} x" for other in others) + " |"


def say(message: str) -> None:
    """Show progress."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
