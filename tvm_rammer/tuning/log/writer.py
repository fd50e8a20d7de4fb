"""Writes the tuning log: every trial at once, by as many tuners as there are."""

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import tvm
import tvm_ffi

from ...compilation.target import tvm_target
from ...device import DeviceSpec
from ...rkernel_gen.measured import code_hash
from ...rkernel_gen.tiling import Function, Tiling
from ..trial import Outcome, Trial
from .database import DATABASE, RECORDS, WORKLOADS
from .lines import Follower, TuningLogWarning, append, locked, read, repair
from .reader import RKERNELS, folder_of, identity, tiling_of, valid_records

CLAIMS = ".claims"


class LogWriter:
    """Appends to the log of a device, and tells what is in it.

    Parameters
    ----------
    root : path
        Where the folders of the targets are, or the folder of this target; made where missing.
    device : DeviceSpec

    Raises
    ------
    TuningLogError
        The folder cannot be made or written.
    """

    def __init__(self, root: str | os.PathLike[str], device: DeviceSpec) -> None:
        self.folder = folder_of(root, device)
        self._device = device
        self._target = tvm_target(device)
        self._records = Follower(self.folder / RKERNELS)
        self._workloads = Follower(self.folder / WORKLOADS)
        self._known_workloads: list[Any] = []
        self._tried: dict[str, dict[Tiling, tuple[str, Outcome]]] = {}
        self._added: Counter[str] = Counter()
        with locked(self.folder):
            for name in (RKERNELS, *DATABASE):
                repair(self.folder / name)
            self._claims = _Claims(self.folder)
            self._follow()
        self._added.clear()

    def __enter__(self) -> "LogWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._claims.close()

    def tried(self, function: Function) -> dict[Tiling, tuple[str, Outcome]]:
        """The tilings of a function that some tuner has tried on this device: code hash and outcome, failures too."""
        return self._tried.get(function.key, {})

    def claim(self, trials: Iterable[Trial], left: Mapping[str, int] | None = None) -> list[Trial]:
        """Claim the trials that no tuner has tried or claimed; they are released by the next claim.

        Parameters
        ----------
        trials : iterable of Trial
        left : mapping of str to int, optional
            For the key of each function, how many trials it lacked when this log was opened. What all tuners have
            made since then, or have claimed, counts against it; without it there is no bound.
        """
        with locked(self.folder):
            self._follow()
            taken = self._claims.of_other_tuners()
            free = [t for t in trials if _label_of(t) not in taken and not self._is_tried(t)]
            if left is not None:
                free = self._within(left, free, taken)
            self._claims.write([_label_of(t) for t in free])
        return free

    def _within(self, left: Mapping[str, int], trials: Iterable[Trial], taken: Iterable[str]) -> list[Trial]:
        """As many of the trials as no tuner will make in their stead."""
        recorded = {_label(key, t, code) for key, tried in self._tried.items() for t, (code, _) in tried.items()}
        # A tuner's claims stay until its next ones: those that it has recorded are among the added.
        pending = Counter(label.split()[0] for label in taken if label not in recorded)
        room = {key: count - self._added[key] - pending[key] for key, count in left.items()}
        found = []
        for trial in trials:
            key = trial.task.function.key
            if room[key] > 0:
                room[key] -= 1
                found.append(trial)
        return found

    def _is_tried(self, trial: Trial) -> bool:
        code, _ = self.tried(trial.task.function).get(trial.tiling, ("", None))
        return code == code_hash(trial.kernel)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        """Append a trial.

        Raises
        ------
        TuningLogError
            The disk is full, or the folder is no longer writable.
        """
        with locked(self.folder):
            # MetaSchedule's record goes first: killed in between, the trial is repeated, and nothing is missing.
            if outcome.run_us and trial.kernel.trace is not None:
                self._add_to_database(trial, outcome)
            append(self.folder / RKERNELS, self._line(trial, outcome))
            self._follow()

    def _line(self, trial: Trial, outcome: Outcome) -> dict[str, Any]:
        failed = {"error": outcome.error} if outcome.error else {}
        return {
            "function": trial.task.function.key,
            "name": trial.kernel.spec.name,
            "rule": trial.tiling.rule,
            "choices": dict(trial.tiling.choices),
            "num_rtasks": trial.kernel.spec.num_rtasks,
            "rtask_us": outcome.rtask_us,
            "operator_us": outcome.operator_us,
            "run_us": list(outcome.run_us),
            "code": code_hash(trial.kernel),
            "device": identity(self._device),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **failed,
        }

    def _follow(self) -> None:
        repair(self.folder / RKERNELS)
        for record in valid_records(self._records.read_new(), self.folder / RKERNELS):
            if record["device"] == identity(self._device):
                outcome = Outcome(tuple(record["run_us"]), record["rtask_us"], record.get("error", ""))
                self._tried.setdefault(record["function"], {})[tiling_of(record)] = (record["code"], outcome)
                self._added[record["function"]] += 1

    def _add_to_database(self, trial: Trial, outcome: Outcome) -> None:
        try:
            workload, record = _as_lines(trial, outcome, self._target)
        except (TypeError, ValueError, RuntimeError) as error:  # how TVM says that a trace cannot be written
            reason = (str(error).strip().splitlines() or ["no reason given"])[-1]
            warnings.warn(
                f"{trial.kernel.spec.name} is not in MetaSchedule's database: {reason}", TuningLogWarning, stacklevel=2
            )
            return
        append(self.folder / RECORDS, [self._workload_index(workload), record])

    def _workload_index(self, line: list[str]) -> int:
        """The line of a workload: records refer to it by number, so it is looked for in what all tuners wrote."""
        from tvm.s_tir.meta_schedule.database import Workload

        self._known_workloads += self._workloads.read_new()
        module = Workload.from_json(line).mod
        for index, known in enumerate(self._known_workloads):
            if known[0] == line[0] and tvm_ffi.structural_equal(Workload.from_json(known).mod, module):
                return index
        append(self.folder / WORKLOADS, line)
        self._known_workloads += self._workloads.read_new()
        return len(self._known_workloads) - 1


def _as_lines(trial: Trial, outcome: Outcome, target: tvm.target.Target) -> tuple[list[str], Any]:
    """A workload and a record as MetaSchedule writes them: its Python code cannot, where a layout is rewritten."""
    from tvm.s_tir.meta_schedule.arg_info import ArgInfo
    from tvm.s_tir.meta_schedule.database import JSONDatabase, TuningRecord

    func = trial.task.function.func
    seconds = [us / 1e6 for us in outcome.run_us]
    with tempfile.TemporaryDirectory() as folder:
        database = JSONDatabase(work_dir=folder)
        workload = database.commit_workload(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
        info = ArgInfo.from_prim_func(func)
        database.commit_tuning_record(TuningRecord(trial.kernel.trace, workload, seconds, target, info))
        (made,), ((_, record),) = (read(pathlib.Path(folder, name)) for name in DATABASE)
    return made, record


def _label_of(trial: Trial) -> str:
    return _label(trial.task.function.key, trial.tiling, code_hash(trial.kernel))


def _label(key: str, tiling: Tiling, code: str) -> str:
    return f"{key} {tiling.label} {code}"


class _Claims:
    """What each tuner of a folder is trying now: a file each, locked as long as its tuner lives."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        number, path = tempfile.mkstemp(prefix=f"{CLAIMS}.", dir=folder)
        os.fchmod(number, 0o644)
        self._path, self._handle = pathlib.Path(path), os.fdopen(number, "w", encoding="utf-8")
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def write(self, labels: Sequence[str]) -> None:
        self._handle.seek(0)
        self._handle.truncate()
        json.dump(labels, self._handle)
        self._handle.flush()

    def of_other_tuners(self) -> set[str]:
        """What living tuners are trying; the files of dead ones are removed."""
        return {label for path in self._folder.glob(f"{CLAIMS}.*") if path != self._path for label in _claims_of(path)}

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._handle.close()


def _claims_of(path: pathlib.Path) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield from json.loads(file.read() or "[]")
        else:
            path.unlink()
