"""What explorations learnt, kept beside the measured rKernels of a tuning log."""

import datetime
import hashlib
import os
import pathlib

from ..compilation.record import Compilation
from ..tuning.log.lines import append, locked, read
from ..tuning.log.reader import folder_of, identity
from .explore import Exploration

EXPLORED = "explored.jsonl"
"""In the folder of the target: a line for each exploration that came to an end."""


def model_key(record: Compilation) -> str:
    """Names a model by its graphs and the candidates of its functions: with other kernels all is open again."""
    kernels = sorted((k.name, k.num_rtasks) for made in record.kernels.values() for k in made)
    return hashlib.sha256(repr((record.graphs, kernels, record.sync)).encode()).hexdigest()[:16]


def remember(root: str | os.PathLike[str], key: str, exploration: Exploration) -> None:
    """Append what an exploration found.

    Raises
    ------
    TuningLogError
        The log cannot be written.
    """
    device = exploration.best.compilation.device
    folder = folder_of(root, device)
    line = {
        "model": key,
        "device": identity(device),
        "best": exploration.best.label,
        "median_us": {a.label: a.median_us for a in exploration.alternatives},
        "calls": sum(len(a.times_us) for a in exploration.alternatives),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    with locked(folder):
        append(folder / EXPLORED, line)


def recall(root: str | os.PathLike[str], key: str, record: Compilation) -> str | None:
    """The label of the plan that was best when the model was explored last on this device; None if it never was."""
    path = pathlib.Path(folder_of(root, record.device), EXPLORED)
    found = [r for r in read(path) if r.get("model") == key and r.get("device") == identity(record.device)]
    return str(found[-1]["best"]) if found else None
