"""rKernels from tuning logs: the best records of a MetaSchedule database."""

import os
import pathlib

import tvm
from tvm import s_tir, tirx
from tvm.s_tir.schedule import ScheduleError

from ..device import DeviceSpec
from ..errors import TuningLogError
from ..ir import RKernel
from ..kernel import ScheduledKernel

FILES = ("database_workload.json", "database_tuning_record.json")
TOP = 8
"""Records looked at for each function."""


class TuningLog:
    """A MetaSchedule database, opened to be read.

    Parameters
    ----------
    folder : path
        Holds `database_workload.json` and `database_tuning_record.json`.

    Raises
    ------
    TuningLogError
        The folder or a file is missing, or MetaSchedule cannot read them.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # Imported here: most compilations use no log, and MetaSchedule takes a while to import.
        from tvm.s_tir import meta_schedule

        missing = [name for name in FILES if not (pathlib.Path(folder) / name).is_file()]
        if missing:
            raise TuningLogError(
                f"{str(folder)!r} is no tuning log: {' and '.join(missing)} missing; "
                "give the folder that MetaSchedule wrote its JSON database to"
            )
        try:
            self._database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
        except (RuntimeError, ValueError, TypeError, KeyError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise TuningLogError(f"cannot read the tuning log {str(folder)!r}: {reason}") from error

    def kernels(self, name: str, func: tirx.PrimFunc, device: DeviceSpec) -> tuple[ScheduledKernel, ...]:
        """Make rKernels of the records of a function.

        Parameters
        ----------
        name : str
        func : tirx.PrimFunc
            Fused and not scheduled, as it was tuned.
        device : DeviceSpec
            A CPU; a record's time is of a run on all its units.

        Returns
        -------
        tuple of ScheduledKernel
            One for each number of rTasks, the fastest. Records that are no single parallel loop are passed over.
        """
        module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        if not self._database.has_workload(module):
            return ()
        made: dict[int, ScheduledKernel] = {}
        for record in self._database.get_top_k(self._database.commit_workload(module), TOP):
            sch = s_tir.Schedule(module, error_render_level="none")
            try:
                record.trace.apply_to_schedule(sch, remove_postproc=False)
            except ScheduleError:
                continue
            rtasks = parallel_extent(sch.mod["main"])
            if rtasks is None or rtasks in made or not record.run_secs:
                continue
            seconds = sum(float(s) for s in record.run_secs) / len(record.run_secs)
            rtask_us = seconds * 1e6 * min(device.units, rtasks) / rtasks
            spec = RKernel(f"{name}_tuned{rtasks}", name, rtasks, rtask_us, measured=True)
            made[rtasks] = ScheduledKernel(spec, sch.mod["main"].without_attr("global_symbol"))
        return tuple(made.values())


def parallel_extent(func: tirx.PrimFunc) -> int | None:
    """The extent of a function's one outermost parallel loop; None where it is not of that form."""
    body = func.body
    while True:
        if isinstance(body, tirx.For):
            if body.kind == tirx.ForKind.PARALLEL:
                return int(body.extent)
            if int(body.extent) != 1:
                return None
        inner = body.block.body if hasattr(body, "block") else getattr(body, "body", None)
        if inner is None:
            return None
        body = inner
