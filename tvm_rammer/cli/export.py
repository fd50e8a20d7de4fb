"""`tvm-rammer export`: write a model for a GPU as a C++ project that needs no TVM."""

import argparse
import pathlib
import re
from typing import Any

from .options import arrays_of, compile_arguments, model_of, model_options
from .progress import end_progress, progress


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "export",
        parents=[model_options()],
        help="write a model for a GPU as a C++ project that needs no TVM",
        description="The target is a GPU, as cuda:h200. The project is one .cu with a C interface, the weights, and a "
        "main that checks itself; CMake and nvcc build it.",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder of the project")
    parser.add_argument("--name", metavar="NAME", help="what its files and identifiers begin with (the model's name)")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input of its main; default: random, seeded",
    )
    parser.set_defaults(run=run, writes=())


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    given = arrays_of(arguments.input)
    from ..compilation.request import Request
    from ..compilation.target import resolve_device, with_threads
    from ..export.project import export_project

    how = compile_arguments(arguments)
    request = Request(
        (model_of(arguments.model),), (how["shapes"],), with_threads(resolve_device(how["target"]), how["threads"]),
        policy=how["policy"], sync=how["sync"], tuning_logs=how["tuning_logs"],
    )  # fmt: skip
    progress(f"compiling {arguments.model} for {arguments.target}")
    folder = export_project(request, arguments.output, arguments.name or identifier_of(arguments.model), given)
    end_progress()
    print(f"wrote {folder}; there: cmake -B build && cmake --build build && build/*_check .")


def identifier_of(model: str) -> str:
    """A model's name as an identifier: of a path its last part, without its ending."""
    name = pathlib.PurePath(model.removeprefix("zoo:").removeprefix("light:")).name
    name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"\.(onnx|pt2)$", "", name).lower()).strip("_")
    return name if name[:1].isalpha() else f"m_{name}".rstrip("_")
