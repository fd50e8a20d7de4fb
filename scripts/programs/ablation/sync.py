"""Print what waits between rTasks gain over a global barrier on random modules: see `scripts/ablation`."""

import argparse
import json
import pathlib
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tvm_rammer.ablations.sync import SyncGain, measure_gains, predict_gains, sample
from tvm_rammer.device import preset


def main() -> int:
    """Predict for a GPU, and measure a sample on the CPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=1000, metavar="N", help="random modules to plan")
    parser.add_argument("--target", default="cuda:h200", metavar="T", help="the device to plan them for")
    parser.add_argument("--channels", type=int, default=128, metavar="N")
    parser.add_argument("--size", type=int, default=32, metavar="N", help="height and width of all images")
    parser.add_argument("--measure", type=int, default=0, metavar="N", help="also measure so many on this CPU")
    parser.add_argument("--repeat", type=int, default=100, metavar="N", help="runs of each measured module")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    shape = {"channels": options.channels, "size": options.size, "progress": say}
    found = {"predicted": predict_gains(range(options.modules), preset(options.target), **shape)}
    if options.measure:
        seeds = sample(found["predicted"], options.measure)
        found["measured"] = measure_gains(seeds, preset("cpu"), repeat=options.repeat, **shape)
    print(f"{options.channels} channels of {options.size} x {options.size}, batch 1; predicted for {options.target}")
    print("| modules | number | share | mean gain | largest gain | mean gain, weighted by time |")
    print("|---|---|---|---|---|---|")
    for name, gains in found.items():
        for label, some in groups(gains):
            print(row(f"{name}, {label}", some, len(gains)))
    if options.json:
        text = json.dumps({name: [asdict(g) for g in gains] for name, gains in found.items()}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


def groups(gains: Sequence[SyncGain]) -> list[tuple[str, list[SyncGain]]]:
    """All modules, the irregular ones, and the others."""
    return [
        ("all", list(gains)),
        ("irregular", [g for g in gains if g.irregular]),
        ("regular", [g for g in gains if not g.irregular]),
    ]


def row(name: str, gains: Sequence[SyncGain], total: int) -> str:
    """A line of the table."""
    if not gains:
        return f"| {name} | 0 | 0 % | | | |"
    mean, largest = statistics.mean(g.gain for g in gains), max(g.gain for g in gains)
    weighted = sum(g.global_us for g in gains) / sum(g.auto_us for g in gains)
    return f"| {name} | {len(gains)} | {100 * len(gains) / total:.0f} % | {mean:.2f} | {largest:.2f} | {weighted:.2f} |"


def say(message: str) -> None:
    """Show progress."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
