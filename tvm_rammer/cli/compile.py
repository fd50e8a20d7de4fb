"""`tvm-rammer compile`: write a library that plain TVM loads."""

import argparse
from typing import Any

from ..files import write_text
from .options import compiled, draw, drawing_options, model_options


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "compile", parents=[model_options(), drawing_options()], help="write a library that plain TVM loads"
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT.so", help="where to write the library")
    parser.add_argument("--cuda-source", metavar="FILE", help="also write the generated CUDA text")
    parser.set_defaults(run=run, writes=("output", "cuda_source", "svg", "trace"))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    module = compiled(arguments)
    draw(arguments, module)
    if arguments.cuda_source:
        write_text(arguments.cuda_source, module.cuda_source())
    print(f"wrote {module.export_library(arguments.output)}")
