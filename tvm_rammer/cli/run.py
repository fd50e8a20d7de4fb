"""`tvm-rammer run`: run a model, and tell how long it takes."""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import RammerError
from ..files import replacing
from .options import compile_arguments, end_progress, model_options, progress, shapes_of

WARM_RUNS = 5
"""Runs after the first one, which finds cold caches and makes what later runs use again."""


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("run", parents=[model_options()], help="run a model, and tell how long it takes")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="default: random, seeded")
    parser.add_argument("--output", metavar="FILE.npz", help="where to write the results")
    parser.set_defaults(run=run, writes=("output",))


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises
    ------
    RammerError
        An input is missing or does not fit, which is found before anything is compiled; or a step fails.
    """
    import numpy as np

    from ..driver import compile
    from ..relay_passes import load_model
    from ..runtime.tensors import tensor_specs

    given = _arrays(arguments.input)
    loaded = load_model(arguments.model, shapes_of(arguments.shape))
    values = _values(tensor_specs(loaded), given)
    progress(f"compiling {arguments.model} for {arguments.target}")
    module = compile(loaded, **compile_arguments(arguments) | {"shapes": None})
    end_progress()
    result, first_ms = _timed(module, values)
    warm_ms = statistics.median(_timed(module, values)[1] for _ in range(WARM_RUNS))
    print(f"ran in {warm_ms:.3f} ms (median of {WARM_RUNS}; the first run took {first_ms:.3f} ms)")
    outputs = result if isinstance(result, tuple) else (result,)
    for i, output in enumerate(outputs):
        print(f"output {i}: {output.dtype}{list(output.shape)}, {_range(output)}")
    if arguments.output:
        with replacing(arguments.output) as new, new.open("wb") as file:
            np.savez(file, *outputs)


def _arrays(texts: Sequence[str]) -> dict[str, Any]:
    """Read the arrays of `--input`."""
    import numpy as np

    arrays = {}
    for text in texts:
        name, _, file = text.rpartition("=")
        try:
            arrays[name] = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise RammerError(f"--input {text!r}: {error}; give NAME=FILE.npy") from error
        if not isinstance(arrays[name], np.ndarray):
            raise RammerError(f"--input {text!r} holds several arrays; give a .npy file")
    return arrays


def _values(specs: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """An array for each input of the model: what was given, else random numbers."""
    from ..runtime.tensors import check_input, random_inputs

    if unknown := given.keys() - {spec.name for spec in specs}:
        names = ", ".join(repr(spec.name) for spec in specs)
        raise RammerError(f"the model has no input {', '.join(map(repr, sorted(unknown)))}; its inputs are {names}")
    values = {spec.name: array for spec, array in zip(specs, random_inputs(specs, 0), strict=True)} | dict(given)
    for spec in specs:
        check_input(values[spec.name], spec)
    return values


def _timed(module: Any, values: Mapping[str, Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = module(**values)
    return result, (time.perf_counter() - started) * 1e3


def _range(array: Any) -> str:
    return f"{array.min()} to {array.max()}" if array.size else "empty"
