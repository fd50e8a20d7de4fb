"""The options that commands share, and what they stand for."""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..errors import RammerError, ShapeError
from ..files import is_saved_model, write_text
from .progress import end_progress, progress

MODEL_HELP = (
    "an ONNX file, a .pt2 file of torch.export.save, zoo:NAME for a model that the benchmarks measure, "
    "or light:NAME for one of the onnx package"
)

TARGET_HELP = (
    "cpu (default), cuda:h200, cuda:h100, cuda:a100 or cuda:v100, with +tf32 behind it for products in TF32, or a "
    ".json file with the figures of a device"
)

THREADS_HELP = "how many threads of a CPU work on one run (default: one for each core that the process may use)"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a command that has something to say of it."""


class Drawable(Protocol):
    """A compiled module, or a profile."""

    def schedule_svg(self) -> str: ...
    def trace(self) -> str: ...


def model_options() -> argparse.ArgumentParser:
    """The options of all commands that compile a model."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("--target", default="cpu", metavar="T", help=TARGET_HELP)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="an input's shape, or the size of a symbolic dimension, as batch=1; may be given several times",
    )
    parser.add_argument(
        "--policy", default="auto", help="auto (default), wavefront, sequential, global, ios, list or search"
    )
    parser.add_argument("--sync", default="auto", help="auto (default), or global: a barrier between waves")
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    parser.add_argument("--threads", type=int, metavar="N", help=THREADS_HELP)
    return parser


def cache_options() -> argparse.ArgumentParser:
    """The option of commands that may take a model from the cache."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--no-cache", action="store_true", help="compile anew, and keep nothing")
    return parser


def model_of(text: str) -> Any:
    """What MODEL stands for: a path, or a model of this package by its name.

    Raises
    ------
    RammerError
        There is no model of this name.
    """
    kind, _, name = text.partition(":")
    if kind == "zoo":
        from ..zoo.models import MODELS

        return MODELS[_known(kind, name, MODELS)]()
    if kind == "light":
        from ..zoo.light import NAMES, light

        return light(_known(kind, name, NAMES))
    return text


def _known(kind: str, name: str, names: Iterable[str]) -> str:
    """The one of `names` that `name` means: only letters and digits count, so that none needs quotes in a shell."""
    known = {_letters(n): n for n in names}
    if _letters(name) not in known:
        choice = ", ".join(f"{kind}:{n}" for n in known.values())
        raise RammerError(f"there is no model '{kind}:{name}'; choose from {choice}")
    return known[_letters(name)]


def _letters(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def drawing_options() -> argparse.ArgumentParser:
    """The options of commands that can draw a schedule."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--svg", metavar="FILE", help="also draw the schedule")
    parser.add_argument("--trace", metavar="FILE", help="also write the schedule as a trace for ui.perfetto.dev")
    return parser


def shapes_of(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape`; a single number may be the size of a symbolic dimension.

    Raises
    ------
    ShapeError
        One of them has another form, or there are two of a name.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        try:
            shape = tuple(int(e) for e in extents.split(",")) if extents else ()
        except ValueError:
            name = ""
        if not name:
            raise ShapeError(f"--shape {text!r} is not of the form NAME=1,3,224,224 or SYMBOL=1; give it so")
        if name in shapes:
            raise ShapeError(f"--shape names {name!r} twice, {shapes[name]} and {shape}; give it once")
        shapes[name] = shape
    return shapes


def arrays_of(texts: Sequence[str]) -> dict[str, Any]:
    """Read the arrays of `--input`.

    Raises
    ------
    RammerError
        One cannot be read, or there are two of a name.
    """
    arrays = {}
    for text in texts:
        name, _, file = text.rpartition("=")
        if not name:
            raise RammerError(f"--input {text!r} names no input; give NAME=FILE.npy")
        if name in arrays:
            raise RammerError(f"--input names {name!r} twice; give it once")
        try:
            arrays[name] = read_array(file)
        except ValueError as error:
            raise RammerError(f"--input {text!r}: {error}; give NAME=FILE.npy") from error
    return arrays


def read_array(file: str) -> Any:
    """The array of a .npy file.

    Raises
    ------
    ValueError
        It cannot be read, holds something else, or several arrays.
    """
    import numpy as np

    try:
        found = np.load(file, allow_pickle=False)
    except OSError as error:
        raise ValueError(f"{file!r} cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:  # what is no array of numbers is pickled, NumPy says
        raise ValueError(f"{file!r} is no array of NumPy's") from error
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{file!r} holds several arrays")
    return found


def compile_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments that `compile`, `bench` and `profile` share."""
    return {
        "target": arguments.target,
        "shapes": shapes_of(arguments.shape),
        "policy": arguments.policy,
        "sync": arguments.sync,
        "tuning_logs": arguments.logs,
        "threads": arguments.threads,
    }


def compiled(arguments: argparse.Namespace) -> Any:
    """The compiled module of a command, or the saved one that it names.

    Raises
    ------
    RammerError
        It is a saved one, and options say how to compile it; it leaves dimensions open; or it cannot be compiled or
        loaded.
    """
    if is_saved_model(arguments.model):
        return saved(arguments)
    from ..driver import compile
    from ..open_shapes.module import as_static

    progress(f"compiling {arguments.model} for {arguments.target}")
    module = compile(model_of(arguments.model), cache=not arguments.no_cache, **compile_arguments(arguments))
    end_progress()
    return as_static(module)


def saved(arguments: argparse.Namespace) -> Any:
    """The saved model of a command; raises as `compiled`."""
    from ..saving.load import load

    plain = model_options().parse_args([arguments.model])
    if given := [f"--{name}" for name in vars(plain) if getattr(arguments, name) != getattr(plain, name)]:
        raise RammerError(f"{arguments.model!r} is compiled already; leave out {', '.join(given)}")
    return load(arguments.model)


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
