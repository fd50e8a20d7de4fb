"""`tvm-rammer bench`: time a model against others."""

import argparse
import json
from typing import Any

from ..files import write_text
from .options import compile_arguments, model_of, model_options
from .progress import end_progress, progress


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("bench", parents=[model_options()], help="time a model against others")
    parser.add_argument(
        "--against",
        default="stock",
        metavar="A,B",
        help="some of stock, stock-same-kernels, onnxruntime, openvino, torch (default: %(default)s)",
    )
    add_comparison(parser)
    parser.add_argument("--json", metavar="FILE", help="where to write all figures")
    parser.set_defaults(run=run, writes=("json",))


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Add what `compared` wants to know beside the model and the contenders."""
    parser.add_argument(
        "--repeat", type=int, default=50, metavar="N", help="runs of each contender (default: %(default)s)"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="X",
        help="how far results may differ, relative to the largest magnitude (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    found = compared(arguments)
    found["model"] = arguments.model
    if arguments.json:
        write_text(arguments.json, json.dumps(found, indent=2) + "\n")
    print(f"{'contender':<20}{'median ms':>12}{'p90 ms':>12}{'runs':>6}{'rel. error':>12}{'ratio':>8}")
    for name, r in found["results"].items():
        ratio = found["ratios"].get(name, 1.0)
        print(f"{name:<20}{r['median_ms']:>12.3f}{r['p90_ms']:>12.3f}{r['n']:>6}{r['max_rel_err']:>12.1e}{ratio:>8.2f}")
    for name, reason in found["missing"].items():
        print(f"{name:<20} missing: {reason}")
    if found["workers"] < found["threads"]:
        print(f"TVM's pool has {found['workers']} workers for {found['threads']} vEUs: rPrograms ran on one thread")


def compared(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time the model of a command against what `--against` names, `--repeat` runs of each."""
    from ..benchmark.bench import bench

    found = bench(
        model_of(arguments.model),
        against=[name for name in arguments.against.split(",") if name],
        repeat=arguments.repeat,
        tolerance=arguments.tolerance,
        progress=progress,
        **compile_arguments(arguments),
    )
    end_progress()
    return found
