"""`tvm-rammer profile`: run a model, and tell what each kernel took."""

import argparse
from typing import Any

from .options import compile_arguments, draw, drawing_options, model_of, model_options
from .progress import end_progress, progress


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "profile",
        parents=[model_options(), drawing_options()],
        help="run a model, and tell what each kernel took in its rPrograms",
    )
    parser.add_argument("--runs", type=int, default=30, metavar="N", help="how often to run it (default: %(default)s)")
    parser.set_defaults(run=run, writes=("svg", "trace"))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from ..runtime.profiler import profile

    progress(f"compiling and running {arguments.model}")
    found = profile(model_of(arguments.model), runs=arguments.runs, **compile_arguments(arguments))
    end_progress()
    draw(arguments, found)
    print(found.text())
