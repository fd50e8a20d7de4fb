"""What `tvm-rammer tune` measured, read back.

A log is a folder with one folder for each target. In it, `rkernels.jsonl` has a line for each constructed rKernel that
was measured, whatever code it is; MetaSchedule's two database files have those among them that a TVM schedule makes.
"""

import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...device import DeviceSpec
from ...errors import TuningLogError
from ...kernel import ScheduledKernel
from ...rkernel_gen.measured import MeasuredTime
from ...rkernel_gen.tiling import Function, Tiling
from .database import DATABASE, DatabaseReader
from .lines import TuningLogWarning, read

RKERNELS = "rkernels.jsonl"

WRONG_RESULT = "wrong result"
"""How the error of a trial begins whose kernel ran and computed something else."""


def folder_name(device: DeviceSpec) -> str:
    """The folder of a device in a log, such as `cpu-x86-64-v4-2` or `cuda-h200-sm_90`."""
    parts = (device.name, device.arch, device.units) if device.kind == "cpu" else (device.name, device.arch)
    return "-".join(str(part).replace(":", "-").replace("/", "-") for part in parts)


def folder_of(root: str | os.PathLike[str], device: DeviceSpec) -> pathlib.Path:
    """Where the records of a device are, or will be: `root` itself where it is the folder of one target."""
    path = pathlib.Path(root)
    own = path.name == folder_name(device) or any((path / name).is_file() for name in (RKERNELS, *DATABASE))
    return path if own else path / folder_name(device)


def identity(device: DeviceSpec) -> dict[str, Any]:
    """What of a device decides whether times that were measured on it hold."""
    named = {"name": device.name, "arch": device.arch, "units": device.units}
    return named | {"processor": device.processor} if device.kind == "cpu" else named


class TuningLog:
    """A tuning log, opened to be read; nothing is ever written to it.

    Parameters
    ----------
    root : path
        Holds a folder for each target, or is the folder of one; also any folder of a MetaSchedule database.

    Raises
    ------
    TuningLogError
        There is no such folder, or it holds no log.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = pathlib.Path(root)
        if not self.root.is_dir():
            raise TuningLogError(
                f"{str(root)!r} is no folder; give one that `tvm-rammer tune --logs` or MetaSchedule wrote"
            )
        names = (RKERNELS, *DATABASE)
        if not any((folder / name).is_file() for folder in self._folders() for name in names):
            raise TuningLogError(
                f"{str(root)!r} is no tuning log: neither it nor a folder in it has {RKERNELS} or {DATABASE[0]}; "
                "give the folder that `tvm-rammer tune --logs` or MetaSchedule wrote"
            )
        self._records: dict[str, dict[str, dict[Tiling, MeasuredTime]]] = {}
        self._databases: dict[str, DatabaseReader | None] = {}
        self._mixed: set[str] = set()

    def measured(self, function: Function) -> dict[Tiling, MeasuredTime]:
        """The tilings of a function that were measured on its device; of several records the last one holds.

        A tiling's own numbers are the measured ones. Whether its code is still the same is to be seen by `code_hash`.
        """
        device = folder_name(function.device)
        if device not in self._records:
            self._records[device] = self._read(function.device)
        return self._records[device].get(function.key, {})

    def kernels(self, function: Function) -> tuple[ScheduledKernel, ...]:
        """rKernels of other records of a MetaSchedule database: empty where `measured` knows the function."""
        if function.device.kind != "cpu" or self.measured(function):
            return ()
        device = folder_name(function.device)
        if device not in self._databases:
            folder = folder_of(self.root, function.device)
            self._databases[device] = None if device in self._mixed else DatabaseReader.open(folder)
        database = self._databases[device]
        return database.kernels(function) if database else ()

    def _folders(self) -> list[pathlib.Path]:
        return [self.root, *(f for f in sorted(self.root.iterdir()) if f.is_dir())]

    def _read(self, device: DeviceSpec) -> dict[str, dict[Tiling, MeasuredTime]]:
        """The records of a device by function; a warning where there are records of other devices only."""
        found: dict[str, dict[Tiling, MeasuredTime]] = {}
        others: set[str] = set()
        folder = folder_of(self.root, device)
        for record in valid_records(read(folder / RKERNELS), folder / RKERNELS):
            if record["device"] != identity(device):
                others.add(_described(record["device"]))
            elif (time := _time_of(record)) is not None:
                found.setdefault(record["function"], {})[tiling_of(record)] = time
        if others:  # a record of MetaSchedule does not say which of the devices it is of
            self._mixed.add(folder_name(device))
        if not folder.is_dir():
            others |= {path.parent.name for path in self.root.glob(f"*/{RKERNELS}")}
        if others:
            warnings.warn(
                f"{self.root}: records of {', '.join(sorted(others))} are not used on {device.name} "
                f"({device.arch}, {device.units} units); tune on this device",
                TuningLogWarning,
                stacklevel=3,
            )
        return found


def _described(device: Mapping[str, Any]) -> str:
    text = "{name} ({arch}, {units} units)".format(**device)
    return f"{text} of {device['processor']}" if device.get("processor") else text


def _time_of(record: Mapping[str, Any]) -> MeasuredTime | None:
    """What is known of a tiling; None where a trial ended before there was a result."""
    if record["operator_us"] is not None:
        return MeasuredTime(record["rtask_us"], record["operator_us"], record["code"])
    if str(record.get("error", "")).startswith(WRONG_RESULT):
        return MeasuredTime(0.0, 0.0, record["code"], wrong=True)
    return None


_FIELDS = {"function", "rule", "choices", "num_rtasks", "rtask_us", "operator_us", "run_us", "code", "device"}


def valid_records(values: Iterable[Any], path: pathlib.Path) -> Iterator[Mapping[str, Any]]:
    """The lines of `rkernels.jsonl` that have what a record must have; a `TuningLogWarning` for each other one."""
    for value in values:
        if isinstance(value, dict) and value.keys() >= _FIELDS and _is_well_formed(value):
            yield value
        else:
            warnings.warn(f"{path}: {str(value)[:80]} is no record; it is left out", TuningLogWarning, stacklevel=2)


def _is_well_formed(record: Mapping[str, Any]) -> bool:
    device, choices = record["device"], record["choices"]
    times = (record["rtask_us"], record["operator_us"])
    return (
        isinstance(device, dict)
        and device.keys() >= {"name", "arch", "units"}
        and isinstance(choices, dict)
        and all(isinstance(value, int) for value in (*choices.values(), record["num_rtasks"]))
        and all(time is None or isinstance(time, int | float) for time in times)
        and isinstance(record["run_us"], list)
        and all(isinstance(record[name], str) for name in ("function", "rule", "code"))
    )


def tiling_of(record: Mapping[str, Any]) -> Tiling:
    """The tiling that a line of `rkernels.jsonl` is about, with the time that was measured."""
    choices = tuple((str(name), int(value)) for name, value in record["choices"].items())
    return Tiling(record["rule"], choices, int(record["num_rtasks"]), float(record["rtask_us"] or 0.0))
