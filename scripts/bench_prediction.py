"""Predict and measure models on this CPU with several policies: see `scripts/bench_prediction`."""

import argparse
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Sequence

import onnx
from bench import MODELS, say

from tvm_rammer.ablations.prediction import APART, Prediction, off_by, order_right, predict_and_measure
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
    cells = [name, f"{p.policy} {p.sync}", f"{p.measured_us / 1e3:.3f}"]
    for predicted_us in (p.predicted_us, p.profiled_us):
        cells += [f"{predicted_us / 1e3:.3f}", f"{off_by(predicted_us, p.measured_us):+.0%}"]
    return "| " + " | ".join(cells) + " |"


def summary(what: str, models: Sequence[Sequence[tuple[float, float]]]) -> str:
    """Median error and order of one kind of prediction; for each model its plans' predicted and measured times."""
    error = statistics.median(abs(off_by(*plan)) for plans in models for plan in plans)
    right, pairs = (sum(counts) for counts in zip(*map(order_right, models), strict=True))
    return f"{what}: median error {error:.0%}; {right} of {pairs} pairs of plans in the right order."


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
    print("| model | policy, sync | measured, ms | predicted, ms | off by | profiled, ms | off by |")
    print("|---|---|---|---|---|---|---|", flush=True)
    found = []
    for name in wanted:
        found.append(measure(name, options.logs, options.repeat))
        print("\n".join(row(name, p) for p in found[-1]), flush=True)
    plans = sum(map(len, found))
    print(f"\n{plans} plans of {len(wanted)} models; pairs are those that differ by more than {APART - 1:.0%}.")
    print(summary("Predicted", [[(p.predicted_us, p.measured_us) for p in ps] for ps in found]))
    print(summary("Profiled", [[(p.profiled_us, p.measured_us) for p in ps] for ps in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
