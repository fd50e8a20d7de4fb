"""`tvm-rammer run`: run a model once."""

import argparse
import time
from typing import Any

from ..errors import RammerError
from .options import compiled, model_options


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("run", parents=[model_options()], help="run a model once")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="default: random, seeded")
    parser.add_argument("--output", metavar="FILE.npz", help="where to write the results")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    import numpy as np

    from ..runtime.tensors import random_inputs

    module = compiled(arguments)
    values = dict(zip((s.name for s in module.inputs), random_inputs(module.inputs, 0), strict=True))
    for text in arguments.input:
        name, _, file = text.partition("=")
        try:
            values[name] = np.load(file, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise RammerError(f"--input {text!r}: {error}; give NAME=FILE.npy") from error
    started = time.perf_counter()
    result = module(**values)
    print(f"ran in {(time.perf_counter() - started) * 1e3:.2f} ms")
    outputs = result if isinstance(result, tuple) else (result,)
    for i, output in enumerate(outputs):
        print(f"output {i}: {output.dtype}{list(output.shape)}, {_range(output)}")
    if arguments.output:
        np.savez(arguments.output, *outputs)


def _range(array: Any) -> str:
    return f"{array.min()} to {array.max()}" if array.size else "empty"
