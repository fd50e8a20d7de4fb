"""What a folder of candidates measured, taken back into the log."""

import os
import pathlib
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...device import DeviceSpec
from ...errors import TuningLogError
from ...rkernel_gen.construct import build
from ...rkernel_gen.measured import code_hash
from ...rkernel_gen.tiling import Tiling
from ..log.lines import read
from ..log.reader import identity
from ..log.writer import LogWriter
from ..tasks import Task
from ..trial import Outcome, Trial

MIN_KERNEL_SHARE = 0.05
"""Least share of the kernel in the time of a launch; below it the clock is too coarse."""

_FIELDS = {"gpu", "device", "function", "rule", "choices", "code"}


def import_times(
    times: str | os.PathLike[str], tasks: Sequence[Task], device: DeviceSpec, logs: str | os.PathLike[str]
) -> Counter[str]:
    """Add times to the log of a device.

    Parameters
    ----------
    times : path
        `times.jsonl`, as `time_candidates.py` wrote it.
    tasks : sequence of Task
        Of the models that the folder was made of.
    device : DeviceSpec
        As it was made for.
    logs : path

    Returns
    -------
    Counter
        Lines by what became of them: "taken", "known", "of other models", "of other code".

    Raises
    ------
    TuningLogError
        There is no such file, it holds something else, or its times are of another device.
    """
    path = pathlib.Path(times)
    if not path.is_file():
        raise TuningLogError(f"there is no file {str(times)!r}; give the times.jsonl that time_candidates.py wrote")
    lines = read(path)
    if not lines or not all(isinstance(line, dict) and line.keys() >= _FIELDS for line in lines):
        raise TuningLogError(
            f"{path} holds something else than times; give the times.jsonl that time_candidates.py wrote"
        )
    by_key = {task.function.key: task for task in tasks}
    counts: Counter[str] = Counter()
    with LogWriter(logs, device) as log:
        for line in lines:
            _check_device(line, device, path)
            counts[_import_line(line, by_key, log)] += 1
    return counts


def _check_device(line: Mapping[str, Any], device: DeviceSpec, path: pathlib.Path) -> None:
    gpu = line["gpu"]
    right = gpu["architecture"] == device.arch.removesuffix("a") and gpu["multiprocessors"] == device.units
    if line["device"] != identity(device) or not right:
        raise TuningLogError(
            f"{path} has times of {gpu['name']} ({gpu['architecture']}, {gpu['multiprocessors']} multiprocessors) for "
            f"kernels of {line['device']['name']}: they say nothing of {device.name}; "
            "give the --target that both were made for"
        )


def _import_line(line: Mapping[str, Any], tasks: Mapping[str, Task], log: LogWriter) -> str:
    task = tasks.get(line["function"])
    if task is None:
        return "of other models"
    choices = tuple((str(name), int(value)) for name, value in line["choices"].items())
    tiling = next((t for t in task.space if t == Tiling(line["rule"], choices, 0, 0.0)), None)
    kernel = build(task.function, tiling) if tiling else None
    if tiling is None or kernel is None or code_hash(kernel) != line["code"]:
        return "of other code"
    trial = Trial(task, tiling, kernel)
    if not log.claim([trial]):
        return "known"
    log.add(trial, outcome_of(line, task.function.device.units))
    return "taken"


def outcome_of(line: Mapping[str, Any], units: int) -> Outcome:
    """Turn a line into an outcome: the time of an rTask is the kernel's, less the launch, over its waves of blocks.

    Several rTasks may run on a multiprocessor at once; the time of one is then its share.
    """
    if "error" in line:
        return Outcome(error=str(line["error"]))
    median_us = statistics.median(line["run_us"])
    alone = max(median_us - line["nothing_us"], MIN_KERNEL_SHARE * median_us)
    return Outcome(tuple(line["run_us"]), round(alone / -(-line["num_rtasks"] // units), 5))
