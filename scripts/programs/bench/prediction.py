"""Predict and measure models on this CPU with several policies: see `scripts/bench`."""

import argparse
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx
from models import NAMES, say

from tvm_rammer.ablations.prediction import (
    MIN_RATIO,
    MIN_SHARE,
    Prediction,
    count_ordered_pairs,
    predict_and_measure,
    relative_deviation,
)
from tvm_rammer.ablations.variants import Variants
from tvm_rammer.device import preset
from tvm_rammer.runtime.tensors import random_inputs
from tvm_rammer.zoo.models import MODELS, model_names

CONFIGURATIONS = (
    ("wavefront", "auto"),
    ("wavefront", "global"),
    ("list", "auto"),
    ("ios", "auto"),
    ("sequential", "auto"),
    ("global", "auto"),
)


def measure(name: str, logs: str | None, repeat: int, rounds: int) -> list[Prediction]:
    """All plans of a model that differ."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        onnx.save(MODELS[name](), path)
        say(f"{name}: making kernels")
        variants = Variants(path, preset("cpu"), logs)
    return predict_and_measure(variants, random_inputs(variants.inputs, 0), CONFIGURATIONS, repeat, say, rounds)


def row(name: str, p: Prediction) -> str:
    """A line of the table."""
    cells = [name, f"{p.policy} {p.sync}", f"{p.measured_us / 1e3:.3f}"]
    for predicted_us in (p.predicted_us, p.profiled_us):
        cells += [f"{predicted_us / 1e3:.3f}", f"{relative_deviation(predicted_us, p.measured_us):+.0%}"]
    return "| " + " | ".join(cells) + " |"


def judged(models: Sequence[Sequence[tuple[float, Prediction]]]) -> str:
    """Median error of some predicted times, and how many pairs of plans they put into the right order."""
    error = statistics.median(abs(relative_deviation(us, plan.measured_us)) for plans in models for us, plan in plans)
    pairs = [count_ordered_pairs([(us, plan.rounds_us) for us, plan in plans]) for plans in models]
    right, told_apart = (sum(counts) for counts in zip(*pairs, strict=True))
    return f"{error:.0%} | {right} of {told_apart}"


def summary(found: Mapping[str, Sequence[Prediction]]) -> str:
    """A line for each model, and one for all."""
    lines = [
        "| model | plans | measured, ms | predicted: off by | pairs in order | profiled: off by | pairs in order |",
        "|---|---|---|---|---|---|---|",
    ]
    predicted = {name: [(p.predicted_us, p) for p in plans] for name, plans in found.items()}
    profiled = {name: [(p.profiled_us, p) for p in plans] for name, plans in found.items()}
    for name, plans in found.items():
        times = sorted(p.measured_us / 1e3 for p in plans)
        cells = (
            name,
            len(plans),
            f"{times[0]:.3f} to {times[-1]:.3f}",
            judged([predicted[name]]),
            judged([profiled[name]]),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    count = sum(map(len, found.values()))
    everything = ("all", count, "", judged([*predicted.values()]), judged([*profiled.values()]))
    return "\n".join([*lines, "| " + " | ".join(map(str, everything)) + " |"])


def judge(found: Mapping[str, Sequence[Prediction]]) -> None:
    """Say what all predictions are worth."""
    print(f"\nPairs of plans count that differ by more than {MIN_RATIO - 1:.0%} in {MIN_SHARE:.0%} of the rounds.\n")
    print(summary(found))


def read(path: pathlib.Path) -> dict[str, list[Prediction]]:
    """The rows that an earlier run printed; what it measured is one round."""
    found: dict[str, list[Prediction]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, plan, *times = [cell.strip() for cell in line.strip("|").split("|")] + [""] * 7
        if name in MODELS and len(plan.split()) == 2:
            measured_us, predicted_us, profiled_us = (1e3 * float(times[i]) for i in (0, 1, 3))
            policy, sync = plan.split()
            found.setdefault(name, []).append(Prediction(policy, sync, predicted_us, profiled_us, (measured_us,)))
    return found


def join(runs: Sequence[Mapping[str, Sequence[Prediction]]]) -> dict[str, list[Prediction]]:
    """Several runs of the same plans as one, each of them a round."""
    return {
        name: [
            replace(
                plans[0],
                profiled_us=statistics.median(p.profiled_us for p in plans),
                rounds_us=tuple(p.measured_us for p in plans),
            )
            for plans in zip(*(run[name] for run in runs), strict=True)
        ]
        for name in runs[0]
    }


def main() -> int:
    """Print the table, each model as soon as it is known, and then what it says in all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=model_names, default=",".join(NAMES), metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    parser.add_argument("--repeat", type=int, default=30, metavar="N", help="runs of each plan")
    parser.add_argument("--rounds", type=int, default=12, metavar="N", help="rounds of measurement; half count")
    parser.add_argument(
        "--join",
        nargs="+",
        type=pathlib.Path,
        metavar="FILE",
        help="only judge what earlier runs printed, all together",
    )
    options = parser.parse_args()
    if options.join:
        if missing := [str(path) for path in options.join if not path.is_file()]:
            parser.error(f"no such file: {', '.join(missing)}")
        runs = [read(path) for path in options.join]
        if len({tuple((name, p.policy, p.sync) for name, plans in run.items() for p in plans) for run in runs}) != 1:
            parser.error("these runs are not of the same plans")
        judge(join(runs))
        return 0
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; give 1 or more")
    print("| model | policy, sync | measured, ms | predicted, ms | off by | profiled, ms | off by |")
    print("|---|---|---|---|---|---|---|", flush=True)
    found = {}
    for name in options.models:
        found[name] = measure(name, options.logs, options.repeat, options.rounds)
        print("\n".join(row(name, p) for p in found[name]), flush=True)
    judge(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
