"""What ptxas has said of kernels, kept on disk: a file each, which is there as a whole or not at all."""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from .. import debug
from .compile import FLAGS, TIME_LIMIT_S, compile_cuda, nvcc_version
from .ptxas import Resources, parse_report


def measure_resources(source: str, arch: str, *, time_limit_s: float = TIME_LIMIT_S) -> Resources:
    """Compile CUDA text of one kernel with nvcc and read what it needs; a text that was compiled before is not again.

    No GPU is needed.

    Parameters
    ----------
    source : str
    arch : str
        `sm_80`, `sm_90`, `sm_90a`, ...
    time_limit_s : float

    Raises
    ------
    MissingToolError
        nvcc is not on the PATH, or does not know `arch`.
    ToolError
        It takes too long, or rejects the text.
    """
    folder = debug.cache_folder() / "ptxas" / "programs"
    key = hashlib.sha256("\0".join((source, arch, str(nvcc_version()), *FLAGS)).encode()).hexdigest()[:32]
    found = load_resources(folder, key) if nvcc_version() is not None else None
    if found is None:
        found = parse_report(compile_cuda(source, arch, time_limit_s=time_limit_s).report)
        save_resources(folder, key, found)
    return found


def load_resources(folder: Path, key: str) -> Resources | None:
    """Read what is kept under a key; None where there is nothing, or its file is broken."""
    try:
        return Resources(**json.loads((folder / f"{key}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def save_resources(folder: Path, key: str, found: Resources) -> None:
    """Keep what was found; where the disk does not take it, a message says so."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder, suffix=".new")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(found), file)
        os.replace(path, folder / f"{key}.json")
    except OSError as error:
        debug.say(1, f"cannot write ptxas results to {folder}: {error}")
