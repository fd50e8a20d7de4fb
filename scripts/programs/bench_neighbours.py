"""Time models beside busy processes, and print a Markdown table: see `scripts/bench_neighbours`."""

import argparse
import json
import pathlib
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict

import onnx

from tvm_rammer.benchmark.neighbours import Latency, beside_neighbours, installed
from tvm_rammer.zoo.models import MODELS, model_names, names_of

NAMES = (
    "SqueezeNet", "ShuffleNet", "Inception v1", "LSTM 8 x 8 x 256", "ONNX LSTM 2 x 50 x 32", "Transformer 2 x 32 x 128",
)  # fmt: skip
ENGINES = ("rammer", "onnxruntime", "openvino")


def main() -> int:
    """Measure each model in turn; every row is printed as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=model_names, default=",".join(NAMES), metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    parser.add_argument("--engines", type=names_of("engines", ENGINES), default=",".join(ENGINES), metavar="A,B")
    parser.add_argument("--neighbours", default="0,1,2,4", metavar="N,M", help="numbers of busy processes")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--clients", type=int, default=1, metavar="N", help="processes of an engine at the same time")
    parser.add_argument("--quota", type=float, metavar="P", help="processors that an engine may use")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="measurements of each engine")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path)
    arguments = parser.parse_args()
    engines = installed(arguments.engines)
    neighbours = [int(n) for n in arguments.neighbours.split(",")]
    print("| model | neighbours | " + " | ".join(f"{e}: p50 / mean / p99, ms" for e in engines) + " | mean | p99 |")
    print("|---" * (4 + len(engines)) + "|", flush=True)
    found = {}
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            onnx.save(MODELS[name](), path)
            found[name] = beside_neighbours(
                path, engines, neighbours,
                threads=arguments.threads, seconds=arguments.seconds, rounds=arguments.rounds,
                clients=arguments.clients, quota=arguments.quota,
            )  # fmt: skip
        for count, latencies in found[name].items():
            print(row(name, count, latencies), flush=True)
    if arguments.json:
        figures = {n: {c: {e: asdict(x) for e, x in row.items()} for c, row in f.items()} for n, f in found.items()}
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def row(name: str, neighbours: int, latencies: Mapping[str, Latency]) -> str:
    """A line of the table; the last two columns are the first engine's times over those of the better other one."""
    ours, *others = latencies.values()
    cells = [f"{x.p50:.2f} / {x.mean:.2f} / {x.p99:.2f}" for x in latencies.values()]
    mean, p99 = (
        f"{getattr(ours, key) / min(getattr(o, key) for o in others):.2f}" if others else "" for key in ("mean", "p99")
    )
    return f"| {name} | {neighbours} | " + " | ".join(cells) + f" | {mean} | {p99} |"


if __name__ == "__main__":
    sys.exit(main())
