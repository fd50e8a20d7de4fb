"""Time a set of models and print a Markdown table: see `scripts/bench`."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
from typing import Any

import onnx

from tvm_rammer.benchmark.bench import CONTENDERS, bench
from tvm_rammer.zoo.models import MODELS, model_names, names_of

NAMES = [name for name in MODELS if "10 x 20" not in name]


def main() -> int:
    """Measure each model in turn; every row is printed as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--against", type=names_of("contenders", CONTENDERS), default="stock-same-kernels,onnxruntime", metavar="A,B"
    )
    parser.add_argument(
        "--models", type=model_names, default=",".join(NAMES), metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    parser.add_argument("--repeat", type=int, default=50, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="benchmarks, of which the median counts")
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path)
    arguments = parser.parse_args()
    against = arguments.against
    print("| model | rOperators | launches | ours, ms | " + " | ".join(f"{a}, times ours" for a in against) + " |")
    print("|---" * (4 + len(against)) + "|", flush=True)
    found = {}
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            onnx.save(MODELS[name](), path)
            found[name] = [
                bench(path, against=against, repeat=arguments.repeat, tuning_logs=arguments.logs, progress=say)
                for _ in range(arguments.rounds)
            ]
        print(row(name, found[name], against), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def row(name: str, rounds: list[dict[str, Any]], against: list[str]) -> str:
    """A line of the table; a ratio is the median over the rounds."""
    facts = rounds[0]["report"]
    ours = statistics.median(r["results"]["rammer"]["median_ms"] for r in rounds)
    ratios = [
        f"{statistics.median(r['ratios'][a] for r in rounds):.2f}" if a in rounds[0]["ratios"] else "missing"
        for a in against
    ]
    return f"| {name} | {facts['roperators']} | {facts['launches']} | {ours:.2f} | " + " | ".join(ratios) + " |"


def say(message: str) -> None:
    """Show progress."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
