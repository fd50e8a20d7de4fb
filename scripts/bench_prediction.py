"""Predict and measure models on this CPU with several policies: see `scripts/bench_prediction`."""

import argparse
import pathlib
import statistics
import sys
import tempfile

import onnx
from bench import MODELS, say

from tvm_rammer.ablations.prediction import Prediction, order_right, predict_and_measure
from tvm_rammer.ablations.variants import Variants
from tvm_rammer.bench import random_inputs
from tvm_rammer.device import preset

WAYS = (
    ("wavefront", "auto"),
    ("wavefront", "global"),
    ("list", "auto"),
    ("ios", "auto"),
    ("sequential", "auto"),
    ("global", "auto"),
)


def measure(name: str, logs: str | None, repeat: int) -> list[Prediction]:
    """All plans of a model that differ."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        onnx.save(MODELS[name](), path)
        say(f"{name}: making kernels")
        variants = Variants(path, preset("cpu"), logs)
    return predict_and_measure(variants, random_inputs(variants.inputs, 0), WAYS, repeat, say)


def row(name: str, p: Prediction) -> str:
    """A line of the table."""
    cells = (name, f"{p.policy} {p.sync}", f"{p.predicted_us / 1e3:.3f}", f"{p.measured_us / 1e3:.3f}")
    return "| " + " | ".join((*cells, f"{p.predicted_us / p.measured_us - 1.0:+.0%}")) + " |"


def main() -> int:
    """Print the table, each model as soon as it is known, and then what it says in all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), metavar="A,B", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    parser.add_argument("--repeat", type=int, default=30, metavar="N", help="runs of each plan")
    options = parser.parse_args()
    wanted = options.models.split(",")
    if unknown := [name for name in wanted if name not in MODELS]:
        parser.error(f"unknown models {', '.join(unknown)}; choose from {', '.join(MODELS)}")
    print("| model | policy, sync | predicted, ms | measured, ms | off by |")
    print("|---|---|---|---|---|", flush=True)
    errors, right, pairs = [], 0, 0
    for name in wanted:
        found = measure(name, options.logs, options.repeat)
        print("\n".join(row(name, p) for p in found), flush=True)
        errors += [p.error for p in found]
        ordered = order_right(found)
        right, pairs = right + ordered[0], pairs + ordered[1]
    print(f"\nMedian error {statistics.median(errors):.0%} over {len(errors)} plans of {len(wanted)} models; ", end="")
    print(f"{right} of {pairs} pairs of plans that differ by more than 10 % are in the right order.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
