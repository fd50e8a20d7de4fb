"""`tvm-rammer warm`: fill the cache for the shapes that will come."""

import argparse
import itertools
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ... import debug
from ...errors import RammerError, ShapeError
from ..options import compile_arguments, model_of, model_options, shapes_of

_RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\d+))?")
"""Sizes of a symbolic dimension: 32..1024, or 32..1024:8 in steps."""

MOST_MODULES = 10_000
"""What one command compiles at most: more is a slip of the pen."""

Choice = tuple[str, int | tuple[int, ...]]
"""An input with a shape, or a symbolic dimension with a size."""


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "warm",
        parents=[model_options()],
        help="compile a model for several shapes into the cache",
        description="--shape may be given more than once for an input, and a symbolic dimension may have several "
        "sizes: width=320,640 or width=32..1024:32. What is given for different names is combined.",
    )
    parser.set_defaults(run=run, writes=())


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises
    ------
    RammerError
        Nothing would be kept, or the shapes do not fit the model.
    """
    from tqdm import tqdm

    from ...driver import compile
    from ...open_shapes.module import SymbolicModule

    if debug.cache_bytes() == 0:
        raise RammerError("the cache is off: RAMMER_CACHE_BYTES is 0; set it to the bytes that models may take")
    if arguments.target != "cpu":
        raise RammerError(f"modules for {arguments.target!r} are not kept in the cache; leave out --target")
    texts, arguments.shape = arguments.shape, []
    model = model_of(arguments.model)
    module = compile(model, **compile_arguments(arguments))
    if not isinstance(module, SymbolicModule):
        if texts:  # finds out whether they are the model's
            compile(model, **compile_arguments(arguments) | {"shapes": shapes_of(texts)})
        print(f"{arguments.model} has static shapes; it is in the cache")
        return
    every = _every(texts, module.shapes.axes)
    wanted = [module.shapes.bind(shapes) for shapes in every]
    with tqdm(wanted, disable=None, leave=False, position=0, dynamic_ncols=True, unit="module") as bar:
        for shapes in bar:
            bar.set_postfix_str(_text(shapes))
            started = time.perf_counter()
            known = module.find(shapes) is not None
            module.prepare(shapes)
            took = "was there" if known else f"{time.perf_counter() - started:.1f} s"
            bar.write(f"{_text(shapes)}: {took}", file=sys.stdout)
            sys.stdout.flush()


def _every(texts: Sequence[str], inputs: Mapping[str, Any]) -> list[dict[str, int | tuple[int, ...]]]:
    """Each combination of the shapes and sizes of `--shape`."""
    choices: dict[str, list[Choice]] = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        found: Iterator[Choice] = (
            iter(shapes_of([text]).items()) if name in inputs else ((name, size) for size in _sizes(text, extents))
        )
        known = choices.setdefault(name, [])
        known.extend(itertools.islice(found, MOST_MODULES + 1 - len(known)))
    count = 1
    for some in choices.values():
        count *= len(some)
    if count > MOST_MODULES:
        raise ShapeError(
            f"{', '.join(texts)} are at least {count} modules, of which one command compiles {MOST_MODULES}; "
            "give fewer sizes"
        )
    return [dict(combined) for combined in itertools.product(*choices.values())]


def _sizes(text: str, extents: str) -> Iterator[int]:
    for part in extents.split(","):
        found = _RANGE.fullmatch(part)
        if not (part.isdecimal() or found):
            raise ShapeError(f"--shape {text!r} is not of the form NAME=320,640 or NAME=32..1024:32")
        if found:
            low, high, step = int(found[1]), int(found[2]), int(found[3] or 1)
            if low > high or step < 1:
                raise ShapeError(f"--shape {text!r} has the range {part}, which is empty; give LOW..HIGH:STEP")
            yield from range(low, high + 1, step)
        else:
            yield int(part)


def _text(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in shapes.items())
