"""A tiling that is tried, and what came of it."""

import statistics
from dataclasses import dataclass

from ..kernel import ScheduledKernel
from ..rkernel_gen.tiling import Tiling
from .tasks import Task


@dataclass(frozen=True, slots=True)
class Trial:
    """A tiling to measure.

    Parameters
    ----------
    task : Task
    tiling : Tiling
    kernel : ScheduledKernel
        Its code.
    """

    task: Task
    tiling: Tiling
    kernel: ScheduledKernel


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave.

    Parameters
    ----------
    run_us : tuple of float
        Times of the operator on all units, in microseconds; empty where it failed.
    rtask_us : float or None
        Time of one rTask alone.
    error : str
        Why it failed.
    """

    run_us: tuple[float, ...] = ()
    rtask_us: float | None = None
    error: str = ""

    @property
    def operator_us(self) -> float | None:
        """Median time of the operator; None where it failed."""
        return statistics.median(self.run_us) if self.run_us else None
