"""rKernels from the best records of a MetaSchedule database."""

import pathlib
import tempfile

import tvm
from tvm import s_tir
from tvm.s_tir.schedule import ScheduleError

from ...errors import TuningLogError, last_line
from ...ir import RKernel
from ...kernel import ScheduledKernel
from ...rkernel_gen.analysis.parallel import parallel_extent
from ...rkernel_gen.tiling import Function
from .lines import read

WORKLOADS, RECORDS = DATABASE = ("database_workload.json", "database_tuning_record.json")
TOP = 8
"""Records looked at for each function."""


class DatabaseReader:
    """A MetaSchedule database, read once.

    Parameters
    ----------
    folder : pathlib.Path
        Holds the two files; they are never written, and torn lines are left out.

    Raises
    ------
    TuningLogError
        MetaSchedule cannot read them.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        # Imported here: most compilations use no log, and MetaSchedule takes a while to import.
        from tvm.s_tir import meta_schedule

        with tempfile.TemporaryDirectory() as copy:
            for name in DATABASE:
                read(folder / name)  # warns of what is left out
                text = (folder / name).read_bytes()
                pathlib.Path(copy, name).write_bytes(text[: text.rfind(b"\n") + 1])
            try:
                self._database = meta_schedule.database.JSONDatabase(work_dir=copy)
            except (RuntimeError, ValueError, TypeError, KeyError) as error:
                raise TuningLogError(
                    f"MetaSchedule cannot read the database in {str(folder)!r}: {last_line(error)}; "
                    "tune again with this TVM"
                ) from error

    @staticmethod
    def open(folder: pathlib.Path) -> "DatabaseReader | None":
        """Read the database of a folder; None where there is none."""
        return DatabaseReader(folder) if all((folder / name).is_file() for name in DATABASE) else None

    def kernels(self, function: Function) -> tuple[ScheduledKernel, ...]:
        """Make rKernels of the records of a function.

        Parameters
        ----------
        function : Function
            Of a CPU; a record's time is of a run on all its units.

        Returns
        -------
        tuple of ScheduledKernel
            One for each number of rTasks, the fastest. Records that are no single parallel loop are passed over.
        """
        module = tvm.IRModule({"main": function.func.with_attr("global_symbol", "main")})
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
            rtask_us = seconds * 1e6 * min(function.device.units, rtasks) / rtasks
            spec = RKernel(f"{function.name}_tuned{rtasks}", function.name, rtasks, rtask_us, measured=True)
            made[rtasks] = ScheduledKernel(spec, sch.mod["main"].without_attr("global_symbol"))
        return tuple(made.values())
