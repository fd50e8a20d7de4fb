"""The files of a bundle: each content once, and a manifest that tells whether all arrived."""

import contextlib
import hashlib
import json
import pathlib
import shutil
import uuid
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ..errors import ToolError

MANIFEST = "manifest.json"


def check_replaceable(folder: pathlib.Path, kind: str, keep: Collection[str] = ()) -> None:
    """Make sure that a folder may be replaced; nothing is changed.

    Parameters
    ----------
    folder : pathlib.Path
    kind : str
        What the folder is to hold, for the message.
    keep : collection of str
        Files that work on another machine has written: a folder that holds one is not replaced.

    Raises
    ------
    ToolError
        The folder holds something else, or one of the files of `keep`.
    """
    try:
        holds = folder.exists() and any(folder.iterdir())
    except OSError as error:
        raise ToolError(f"{str(folder)!r} cannot become a folder: {error.strerror}; name a new one") from error
    if holds and not (folder / MANIFEST).is_file():
        raise ToolError(f"{str(folder)!r} holds something that is no {kind}; name a new folder")
    if results := [name for name in keep if (folder / name).exists()]:
        raise ToolError(
            f"{str(folder)!r} is a {kind} that holds {', '.join(results)}, which would be lost; "
            "take it out, or name a new folder"
        )


@contextlib.contextmanager
def replacing_folder(folder: pathlib.Path, kind: str, keep: Collection[str] = ()) -> Iterator["Files"]:
    """Fill a folder, as a whole or not at all: what it held is replaced when the block ends without an error.

    Yields
    ------
    Files
        Of a folder within it, whose files move up at the end.

    Raises
    ------
    ToolError
        As `check_replaceable`, or the disk is full, or the folder may not be written.
    """
    check_replaceable(folder, kind, keep)
    is_new = not folder.exists()
    inside = folder / f".{uuid.uuid4().hex}"
    try:
        inside.mkdir(parents=True)
        try:
            yield Files(inside)
            for path in folder.iterdir():
                if path != inside:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            for path in inside.iterdir():
                path.rename(folder / path.name)
        finally:
            shutil.rmtree(inside, ignore_errors=True)
            if is_new and not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise ToolError(f"cannot write {str(folder)!r}: {error.strerror}; name a folder where there is room") from error


class Files:
    """Writes into the folder of a bundle.

    Parameters
    ----------
    folder : pathlib.Path
        Exists.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def add_array(self, array: np.ndarray) -> str:
        """Write the bytes of an array, unless the bundle has them; return the path in the bundle."""
        data = np.ascontiguousarray(array).tobytes()
        return self.write(f"data/{hashlib.sha256(data).hexdigest()[:16]}.bin", data)

    def write(self, path: str, data: bytes | str) -> str:
        """Write a file; return its path in the bundle."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def write_json(self, path: str, data: Any) -> str:
        """Write a JSON file; return its path in the bundle."""
        return self.write(path, json.dumps(data, indent=1) + "\n")

    def finish(self) -> int:
        """Write the manifest of all files; return the size of the bundle in bytes."""
        paths = [p for p in sorted(self.folder.rglob("*")) if p.is_file() and p.name != MANIFEST]
        listed = {
            str(path.relative_to(self.folder)): {
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in paths
        }
        self.write_json(MANIFEST, listed)
        return sum(path.stat().st_size for path in (*paths, self.folder / MANIFEST))
