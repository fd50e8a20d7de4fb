"""A folder of saved models, so that compiling the same again takes no longer than loading it.

Each entry is one file, named by its key (`key.request_key`) and put in its place by one rename: several processes may
use a folder at the same time without locks. What goes wrong with it never hinders a compilation.
"""

import contextlib
import os
import pathlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .. import debug
from ..compilation.request import Request
from ..errors import ModelError, RammerError, first_line
from ..runtime.module import RammerModule
from .key import NoKeyError, request_key
from .link import can_link
from .load import load

SUFFIX = ".rammer"

_ABANDONED_S = 3600.0
"""Age at which a file that was never put in its place is a killed process's."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A place in the cache, for one compilation.

    Parameters
    ----------
    path : pathlib.Path
    limit : int
        Bytes that the folder may hold.
    """

    path: pathlib.Path
    limit: int

    def load(self, concurrency: int) -> RammerModule | None:
        """What is there; None where there is nothing, or nothing that can be used."""
        if not self.path.exists():
            return None
        try:
            module = load(self.path, concurrency=concurrency)
        except (RammerError, OSError) as error:
            debug.say(1, f"an entry of the cache is not used: {first_line(error)}")
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(self.path)  # used last
        debug.say(1, f"taken from the cache: {self.path}")
        return module

    def store(self, module: RammerModule, concurrency: int) -> RammerModule | None:
        """Keep a module, and read it back; None where that cannot be done.

        What is kept has run through the code generator once: the module that is read back needs no second time.
        """
        try:
            if not can_link():
                debug.say(1, "not kept in the cache: there is no C compiler to link with")
                return None
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            module.save(self.path)
            kept = load(self.path, concurrency=concurrency)
            trim(self.path.parent, self.limit)
        except (RammerError, OSError, ValueError) as error:  # a null byte in the path is a ValueError
            debug.say(1, f"not kept in the cache: {first_line(error)}")
            return None
        debug.say(1, f"kept in the cache: {self.path}")
        return kept


def find_entry(request: Request, cache: bool | str | os.PathLike[str]) -> Entry | None:
    """The place of a compilation; None where it is not to be kept.

    Parameters
    ----------
    request : Request
    cache : bool or path
        As in `tvm_rammer.compile`.

    Raises
    ------
    ModelError
        `cache` is something else.
    """
    if not isinstance(cache, bool | str | os.PathLike):
        raise ModelError(f"cache is {cache!r}; give True, False, or a folder")
    limit = debug.cache_bytes()
    if cache is False or limit == 0:
        return None
    try:
        folder = debug.model_cache_folder() if cache is True else pathlib.Path(cache)
        return Entry(folder.absolute() / f"{request_key(request)}{SUFFIX}", limit)
    except NoKeyError as reason:
        debug.say(1, f"not looked for in the cache: {reason}")
    except OSError as error:  # no such file
        debug.say(1, f"not looked for in the cache: {first_line(error)}")
    return None


def entries(folder: pathlib.Path) -> Sequence[tuple[pathlib.Path, int, float]]:
    """The entries of a folder with their bytes and the times of their last use, the latest first."""
    return [entry for entry in _files(folder) if not entry[0].name.startswith(".")]


def _files(folder: pathlib.Path) -> list[tuple[pathlib.Path, int, float]]:
    """The entries, and what is in the making: its name begins with a dot."""
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            about = path.stat()
            found.append((path, about.st_size, about.st_mtime))
    return sorted(found, key=lambda entry: -entry[2])


def trim(folder: pathlib.Path, limit: int) -> int:
    """Remove what was used least recently until a folder holds no more than `limit` bytes; with -1 all of it.

    Returns
    -------
    int
        How many entries were removed.
    """
    kept = removed = 0
    for path, size, used in _files(folder):
        hidden = path.name.startswith(".")  # in the making, or left by a process that was killed
        kept += 0 if hidden else size
        if (hidden and time.time() - used > _ABANDONED_S) or (not hidden and kept > limit):
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
            kept -= 0 if hidden else size
    return removed
