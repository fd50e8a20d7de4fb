"""`tvm-rammer explain`: tell what each operator became, and why."""

import argparse
from typing import Any

from .options import cache_options, compiled, draw, drawing_options, model_options


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "explain",
        parents=[model_options(), drawing_options(), cache_options()],
        help="tell what each operator became, and why",
    )
    parser.set_defaults(run=run, writes=("svg", "trace"))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    module = compiled(arguments)
    draw(arguments, module)
    print(module.explain())
