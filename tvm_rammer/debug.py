"""The `RAMMER_*` environment variables: read here, and nowhere else."""

import os
import pathlib
import sys
from collections.abc import Callable

LEVELS = range(6)


def level() -> int:
    """Return `RAMMER_DEBUG`, 0 (silent) to 5 (all); a value that is no such number counts as 1."""
    text = os.environ.get("RAMMER_DEBUG", "0")
    return int(text) if text.isdecimal() and int(text) in LEVELS else 1


def say(at: int, message: str) -> None:
    """Print `message` to standard error where `RAMMER_DEBUG` is at least `at`."""
    if level() >= at:
        print(f"rammer: {message}", file=sys.stderr, flush=True)


def dump(name: str, text: Callable[[], str]) -> None:
    """Write what `text` returns to the file `name` in the folder `RAMMER_DUMP`, where that is set."""
    folder = os.environ.get("RAMMER_DUMP")
    if folder:
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text(), encoding="utf-8")


def cache_folder() -> pathlib.Path:
    """Where results that take long are kept: `RAMMER_CACHE`, or `tvm_rammer` in the user's cache folder."""
    own = os.environ.get("RAMMER_CACHE")
    if own:
        return pathlib.Path(own)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "tvm_rammer")
