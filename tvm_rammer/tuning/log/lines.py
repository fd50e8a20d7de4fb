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

from ...errors import TuningLogError

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
    """Append a line, after `repair`; the caller holds the lock of the folder.

    Raises
    ------
    TuningLogError
        The disk is full, or the file cannot be written: it is as it was before.
    """
    line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    repair(path)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise _not_written(path, error) from error
    size = os.fstat(handle).st_size
    try:
        if os.write(handle, line) != len(line):
            raise OSError(0, "the disk is full")
        os.fsync(handle)
    except OSError as error:
        os.ftruncate(handle, size)
        raise _not_written(path, error) from error
    finally:
        os.close(handle)


def repair(path: pathlib.Path) -> None:
    """Move a line without an end to `<name>.torn`, with a `TuningLogWarning`; the caller holds the lock of the folder.

    MetaSchedule's own reader gives up at such a line.
    """
    if not path.exists():
        return
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n":
                return
            text = path.read_bytes()
            end = text.rfind(b"\n") + 1
            torn = path.with_name(f"{path.name}.torn")
            with torn.open("ab") as kept:
                kept.write(text[end:] + b"\n")
            file.truncate(end)
    except OSError as error:
        raise _not_written(path, error) from error
    number = text.count(b"\n") + 1
    warnings.warn(
        f"{path}, line {number} has no end: its writer was killed; it is in {torn.name} now",
        TuningLogWarning,
        stacklevel=2,
    )


def _not_written(path: pathlib.Path, error: OSError) -> TuningLogError:
    return TuningLogError(
        f"cannot write to {str(path)!r}: {error.strerror}; make room or name another folder, "
        "then start again: what was measured so far is kept"
    )


def read(path: pathlib.Path) -> list[Any]:
    """Read all lines of a file (`Follower.read_new`)."""
    return Follower(path).read_new()


class Follower:
    """Reads a file that grows.

    Parameters
    ----------
    path : pathlib.Path
        Need not be there yet.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path, self._at, self._number = path, 0, 0

    def read_new(self) -> list[Any]:
        """Read the lines that were appended since the last call; none where there is no file.

        A line that is incomplete or no JSON is left out, with a `TuningLogWarning`.

        Raises
        ------
        TuningLogError
            The file cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                *lines, rest = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TuningLogError(
                f"cannot read {str(self._path)!r}: {error.strerror}; name a folder of tuning logs that can be read"
            ) from error
        values = []
        for line in lines:
            self._number += 1
            self._at += len(line) + 1
            try:
                values.append(json.loads(line))
            except ValueError:
                self._warn(self._number, "is not JSON")
        if rest:
            self._warn(self._number + 1, "has no end: its writer was killed")
        return values

    def _warn(self, number: int, what: str) -> None:
        warnings.warn(f"{self._path}, line {number} {what}; it is left out", TuningLogWarning, stacklevel=4)
