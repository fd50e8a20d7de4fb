"""Files of JSON, a value a line, that several processes append to and any of them may die in the middle of.

A line counts once its end is written. Each line is one `write`, under a lock of the folder, and on the disk before
the lock is released; what a killed process left of its last line is set aside by the next writer.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..errors import TuningLogError

LOCK = ".lock"


class TuningLogWarning(UserWarning):
    """A part of a tuning log is not used; the message says which, and why."""


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Be the only writer of a folder; make the folder where it is missing.

    Raises
    ------
    TuningLogError
        The folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise TuningLogError(
            f"cannot write a tuning log to {str(folder)!r}: {error.strerror}; name a folder that can be written"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def append(path: pathlib.Path, value: Any) -> None:
    """Append a line; the caller holds the lock of the folder.

    Raises
    ------
    TuningLogError
        The disk is full, or the file cannot be written: it is as it was before.
    """
    line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        whole = _mend(path, handle)
        try:
            if os.write(handle, line) != len(line):
                raise OSError(0, "the disk is full")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, whole)
            raise
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        os.close(handle)


def _not_written(path: pathlib.Path, error: OSError) -> TuningLogError:
    return TuningLogError(
        f"cannot write to {str(path)!r}: {error.strerror}; make room or name another folder, "
        "then start again: what was measured so far is kept"
    )


def _mend(path: pathlib.Path, handle: int) -> int:
    """Move a line without an end to `<name>.torn`; return the size of the whole lines."""
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return size
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    with path.with_name(f"{path.name}.torn").open("ab") as torn:
        torn.write(text[whole:] + b"\n")
    os.ftruncate(handle, whole)
    return whole


def read(path: pathlib.Path) -> list[Any]:
    """Read all lines of a file; none where there is no file.

    What is no whole line of JSON is left out, with a `TuningLogWarning`.

    Raises
    ------
    TuningLogError
        The file cannot be read.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TuningLogError(
            f"cannot read {str(path)!r}: {error.strerror}; name a folder of tuning logs that can be read"
        ) from error
    *lines, rest = text.split(b"\n")
    values = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(json.loads(line))
        except ValueError:
            _warn(path, number, "is not JSON")
    if rest:
        _warn(path, len(lines) + 1, "has no end: its writer was killed")
    return values


def _warn(path: pathlib.Path, number: int, what: str) -> None:
    warnings.warn(f"{path}, line {number} {what}; it is left out", TuningLogWarning, stacklevel=4)
