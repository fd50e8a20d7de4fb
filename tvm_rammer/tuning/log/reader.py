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
    return {"name": device.name, "arch": device.arch, "units": device.units}


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
            self._databases[device] = DatabaseReader.open(folder)
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
                others.add("{name} ({arch}, {units} units)".format(**record["device"]))
            elif record.get("operator_us") is not None:
                tiling = tiling_of(record)
                time = MeasuredTime(record["rtask_us"], record["operator_us"], record["code"])
                found.setdefault(record["function"], {})[tiling] = time
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


_FIELDS = {"function", "rule", "choices", "num_rtasks", "rtask_us", "operator_us", "run_us", "code", "device"}


def valid_records(values: Iterable[Any], path: pathlib.Path) -> Iterator[Mapping[str, Any]]:
    """The lines of `rkernels.jsonl` that have what a record must have; a `TuningLogWarning` for each other one."""
    for value in values:
        if isinstance(value, dict) and value.keys() >= _FIELDS:
            yield value
        else:
            warnings.warn(f"{path}: {str(value)[:80]} is no record; it is left out", TuningLogWarning, stacklevel=2)


def tiling_of(record: Mapping[str, Any]) -> Tiling:
    """The tiling that a line of `rkernels.jsonl` is about, with the time that was measured."""
    choices = tuple((str(name), int(value)) for name, value in record["choices"].items())
    return Tiling(record["rule"], choices, int(record["num_rtasks"]), float(record["rtask_us"] or 0.0))
