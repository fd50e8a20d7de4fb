"""`tvm-rammer compile`: write a model that can be loaded without compiling, or a library that plain TVM loads."""

import argparse
from typing import Any

from ..files import write_text
from .options import cache_options, compiled, draw, drawing_options, model_options


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "compile",
        parents=[model_options(), drawing_options(), cache_options()],
        help="write a model that `run` and tvm_rammer.load take, or a library that plain TVM loads",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="OUT.so for a library, any other name for a saved model"
    )
    parser.add_argument("--cuda-source", metavar="FILE", help="also write the generated CUDA text")
    parser.set_defaults(run=run, writes=("output", "cuda_source", "svg", "trace"))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    module = compiled(arguments)
    draw(arguments, module)
    if arguments.cuda_source:
        write_text(arguments.cuda_source, module.cuda_source())
    write = module.export_library if arguments.output.endswith(".so") else module.save
    print(f"wrote {write(arguments.output)}")
