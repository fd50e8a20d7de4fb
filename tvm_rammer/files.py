"""Files: written so that each is there as a whole or not at all; and what a file is."""

import contextlib
import errno
import os
import pathlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator

from .errors import RammerError

Path = str | os.PathLike[str]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[pathlib.Path]:
    """Write a file under another name beside it; it takes the place of `path` when the block ends without an error.

    Parameters
    ----------
    path : path
        A device or a pipe is written to itself.

    Yields
    ------
    pathlib.Path
        What to write; ends as `path` does.

    Raises
    ------
    RammerError
        The disk is full, there is no such folder, or it may not be written.
    """
    try:
        target = _place(path)
    except ValueError as error:  # a null byte
        raise not_written(path, error) from error
    beside = target.with_name(f".{uuid.uuid4().hex}{target.suffix}")
    try:
        if target.exists() and not target.is_file():
            yield target
            return
        try:
            yield beside
            if target.exists():
                shutil.copymode(target, beside)
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise not_written(path, error) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole; raises as `replacing` does."""
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def check_room(folder: Path, nbytes: int) -> None:
    """Find out whether a folder has room for files that others write: LLVM ends the process where there is none.

    Raises
    ------
    RammerError
        The disk is full, or the user may not write as much.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, nbytes)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a file system that cannot tell
            raise RammerError(
                f"there is no room for {nbytes >> 20} MB in {os.fspath(folder)!r}: {error.strerror}; make room, or "
                f"name another folder in the variable TMPDIR"
            ) from error


def check_writable(path: Path) -> None:
    """Find out before long work whether a file can be written afterwards; nothing is changed.

    Raises
    ------
    RammerError
        There is no such folder, it may not be written, or `path` is a folder itself.
    """
    try:
        target = _place(path)
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if target.exists() and not target.is_file():
            may = os.access(target, os.W_OK)
        elif not target.parent.is_dir():
            raise FileNotFoundError(0, f"there is no folder {str(target.parent)!r}")
        else:
            may = os.access(target.parent, os.W_OK) and (not target.exists() or os.access(target, os.W_OK))
        if not may:
            raise PermissionError(0, "it may not be written")
    except (OSError, ValueError) as error:
        raise not_written(path, error) from error


def _place(path: Path) -> pathlib.Path:
    """Where a file is written; a pipe has no other name than the one given, as `/dev/stdout`."""
    special = os.path.exists(path) and not os.path.isfile(path)
    return pathlib.Path(path if special else os.path.realpath(path))


def not_written(path: Path, error: OSError | ValueError) -> RammerError:
    """The error that a file cannot be written."""
    reason = getattr(error, "strerror", None) or error
    return RammerError(f"cannot write {os.fspath(path)!r}: {reason}; give a file in a folder that exists and has room")


def is_saved_model(path: Path) -> bool:
    """Whether a file is meant as a saved model: by its name, or since it begins as a library does."""
    if os.fspath(path).endswith(".rammer"):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(len(_ELF)) == _ELF
    except (OSError, ValueError):
        return False


_ELF = b"\x7fELF"
