"""The options that commands share, and what they stand for."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from ..errors import ShapeError
from ..files import write_text


class Drawable(Protocol):
    """A compiled module, or a profile."""

    def schedule_svg(self) -> str: ...
    def trace(self) -> str: ...


def model_options() -> argparse.ArgumentParser:
    """The options of all commands that compile a model."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("--target", default="cpu", metavar="T", help="cpu, cuda:h200, cuda:h100, cuda:a100, cuda:v100")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="NAME=1,3,224,224", help="a static shape for an input"
    )
    parser.add_argument(
        "--policy", default="auto", help="auto (default), wavefront, sequential, global, ios, list or search"
    )
    parser.add_argument("--sync", default="auto", help="auto, or global: a barrier between waves")
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    return parser


def drawing_options() -> argparse.ArgumentParser:
    """The options of commands that can draw a schedule."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--svg", metavar="FILE", help="also draw the schedule")
    parser.add_argument("--trace", metavar="FILE", help="also write the schedule as a trace for ui.perfetto.dev")
    return parser


def shapes_of(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape`.

    Raises
    ------
    ShapeError
        One of them has another form.
    """
    shapes = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        try:
            shapes[name] = tuple(int(e) for e in extents.split(",")) if extents else ()
        except ValueError:
            name = ""
        if not name:
            raise ShapeError(f"--shape {text!r} is not of the form NAME=1,3,224,224")
    return shapes


def compile_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments that `compile`, `bench` and `profile` share."""
    return {
        "target": arguments.target,
        "shapes": shapes_of(arguments.shape),
        "policy": arguments.policy,
        "sync": arguments.sync,
        "tuning_logs": arguments.logs,
    }


def compiled(arguments: argparse.Namespace) -> Any:
    """The compiled module of a command."""
    from ..driver import compile

    progress(f"compiling {arguments.model} for {arguments.target}")
    module = compile(arguments.model, **compile_arguments(arguments))
    end_progress()
    return module


def draw(arguments: argparse.Namespace, drawable: Drawable) -> None:
    """Write the pictures that were asked for."""
    if arguments.svg:
        write_text(arguments.svg, drawable.schedule_svg())
    if arguments.trace:
        write_text(arguments.trace, drawable.trace())


def tell(message: str) -> None:
    """Print a line to standard error, if anyone still reads it."""
    with contextlib.suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)


_under_way = False
"""Whether a line of progress stands on the terminal, without an end."""


def progress(message: str) -> None:
    """Tell on standard error what happens next: on a terminal in one line that changes."""
    global _under_way
    if not sys.stderr.isatty():
        tell(message)
        return
    with contextlib.suppress(OSError, ValueError):
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)
    _under_way = True


def end_progress() -> None:
    """End the line of progress, so that what comes next has a line of its own."""
    global _under_way
    if _under_way:
        _under_way = False
        tell("")
