"""The `RAMMER_*` environment variables: read here, and nowhere else; and the messages of this package.

Messages go to Python's logger "tvm_rammer". Those up to the level `RAMMER_DEBUG` are also written to standard error,
however logging is set up.
"""

import logging
import os
import pathlib
import sys
from collections.abc import Callable

LEVELS = range(6)

LOGGER = logging.getLogger("tvm_rammer")

_LOGGED_AS = (logging.WARNING, logging.INFO, logging.DEBUG, 8, 7, 6)
"""The level at which Python's logging knows messages of each level of `RAMMER_DEBUG`."""


def level() -> int:
    """Return `RAMMER_DEBUG`, 0 (silent) to 5 (all); a value that is no such number counts as 1."""
    text = os.environ.get("RAMMER_DEBUG", "0")
    return int(text) if text.isdecimal() and int(text) in LEVELS else 1


class _ToStandardError(logging.Handler):
    """Writes what `RAMMER_DEBUG` asks for."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, if it is wanted."""
        if record.levelno in _LOGGED_AS and level() >= _LOGGED_AS.index(record.levelno):
            try:
                sys.stderr.write(f"rammer: {record.getMessage()}\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                self.handleError(record)


LOGGER.addHandler(_ToStandardError())


def say(at: int, message: str) -> None:
    """Log a message; it appears on standard error, too, where `RAMMER_DEBUG` is at least `at`."""
    number = _LOGGED_AS[at]
    if LOGGER.isEnabledFor(number) or level() >= at:
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, number, "", 0, message, (), None))


def dump(name: str, text: Callable[[], str]) -> None:
    """Write what `text` returns to the file `name` in the folder `RAMMER_DUMP`, where that is set.

    Where it cannot be written, a line on standard error says so: the compilation goes on.
    """
    folder = os.environ.get("RAMMER_DUMP")
    if not folder:
        return
    path = pathlib.Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text(), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        say(0, f"cannot write {name} to RAMMER_DUMP={folder!r}: {reason}; name a folder that can be written")


def measures() -> bool:
    """Whether plans are made for this machine's processor as it was measured: unless `RAMMER_MEASURE` is 0."""
    return os.environ.get("RAMMER_MEASURE", "").strip() != "0"


def winograd() -> bool:
    """Whether convolutions may be computed with fewer multiplications: unless `RAMMER_WINOGRAD` is 0."""
    return os.environ.get("RAMMER_WINOGRAD", "").strip() != "0"


CACHE_BYTES = 2 << 30
"""What the cache of compiled models may hold, unless the user says."""


def cache_bytes() -> int:
    """Return `RAMMER_CACHE_BYTES`: what the cache of compiled models may hold; with 0 there is none.

    A value that is no such number counts as none.
    """
    text = os.environ.get("RAMMER_CACHE_BYTES", "").strip()
    return int(text) if text.isdecimal() else CACHE_BYTES


def model_cache_folder() -> pathlib.Path:
    """Where compiled models are kept."""
    return cache_folder() / "models"


def cache_folder() -> pathlib.Path:
    """Where results that take long are kept: `RAMMER_CACHE`, or `tvm_rammer` in the user's cache folder.

    A user who has no home, as in containers with numbers for users, has a folder that is not there: nothing is kept.
    """
    own = os.environ.get("RAMMER_CACHE")
    if own:
        return pathlib.Path(own)
    try:
        return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "tvm_rammer")
    except RuntimeError:
        return pathlib.Path("/nonexistent/.cache/tvm_rammer")
