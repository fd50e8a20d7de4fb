"""`tvm-rammer run`: run a model, and tell how long it takes."""

import argparse
import statistics
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..files import is_saved_model, replacing
from .options import arrays_of, cache_options, compile_arguments, model_of, model_options, saved
from .progress import end_progress, progress

WARM_RUNS = 5
"""Runs after the first one, which finds cold caches and makes what later runs use again."""


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "run", parents=[model_options(), cache_options()], help="run a model, and tell how long it takes"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input's array; default: random, seeded",
    )
    parser.add_argument("--output", metavar="FILE.npz", help="where to write the results, each under its name")
    parser.set_defaults(run=run, writes=("output",))


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises
    ------
    RammerError
        An input is missing or does not fit, which is found before anything is compiled; or a step fails.
    """
    import numpy as np

    given = arrays_of(arguments.input)
    module, values = _module(arguments, given)
    result, first_ms = _timed(module, values)
    warm_ms = statistics.median(_timed(module, values)[1] for _ in range(WARM_RUNS))
    print(f"ran in {warm_ms:.3f} ms (median of {WARM_RUNS}; the first run took {first_ms:.3f} ms)")
    named = dict(zip((spec.name for spec in module.outputs), result, strict=True))
    for name, output in named.items():
        print(f"output {name}: {output.dtype}{list(output.shape)}, {_range(output)}")
    if arguments.output:
        with replacing(arguments.output) as new, new.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, output in named.items():  # numpy.savez takes some names for its own parameters
                with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, output, allow_pickle=False)


def _module(arguments: argparse.Namespace, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The module, and its inputs, which are looked at before anything is compiled."""
    from ..runtime.tensors import input_values

    if is_saved_model(arguments.model):
        module = saved(arguments)
        return module, input_values(module.inputs, given)
    from ..compilation.request import Request
    from ..compilation.target import resolve_device, with_threads
    from ..driver import compile_request
    from ..open_shapes.specialise import open_request

    how = compile_arguments(arguments)
    device = with_threads(resolve_device(how["target"]), how["threads"])
    request = Request(
        (model_of(arguments.model),), (how["shapes"],), device, policy=how["policy"], sync=how["sync"],
        tuning_logs=how["tuning_logs"],
    )  # fmt: skip
    opened = open_request(request) if given or how["shapes"] else None
    if opened is not None and (opened.shapes.is_open or how["shapes"]):
        sizes = {name: array.shape for name, array in given.items()} if opened.shapes.is_open else {}
        request = replace(request, shapes=(opened.shapes.bind(sizes),))
    values: dict[str, Any] = {}

    def loaded(inputs: Sequence[Any]) -> None:
        values.update(input_values(inputs, given))
        progress(f"compiling {arguments.model} for {arguments.target}")

    module = compile_request(request, cache=not arguments.no_cache, loaded=loaded)
    end_progress()
    return module, values or input_values(module.inputs, given)


def _timed(module: Any, values: Mapping[str, Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = module.run(None, values)
    return result, (time.perf_counter() - started) * 1e3


def _range(array: Any) -> str:
    return f"{array.min()} to {array.max()}" if array.size else "empty"
