"""Measured times of tilings: what `rkernel_gen` reads from a tuning log."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from ..device import DeviceSpec
from ..kernel import Pack, ScheduledKernel
from .analysis.structure import structural_key
from .tiling import Function, Tiling

MIN_LAUNCHES = 10
"""An operator's time is trusted from so many times the launch time on, whose own noise is as large as the launch."""


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """The measured times of a tiling.

    Parameters
    ----------
    rtask_us, operator_us : float
        Time of one rTask alone, and of the operator on all units, in microseconds.
    code : str
        `code_hash` of the kernel that was measured: the times hold only while the rule makes the same code.
    wrong : bool
        Whether its result was wrong: the times mean nothing, and such code is never chosen.
    """

    rtask_us: float
    operator_us: float
    code: str
    wrong: bool = False

    def alone_us(self, tiling: Tiling, device: DeviceSpec) -> float:
        """Time of one rTask while others of its operator keep all units busy, in microseconds.

        It is at least the time alone. The operator's time includes how rTasks compete for caches and bandwidth; but it
        also includes a launch, whose time varies by as much as a small operator takes.
        """
        rounds = -(-tiling.num_rtasks // device.units)
        if self.operator_us < MIN_LAUNCHES * device.launch_us:
            return self.rtask_us
        return max(self.rtask_us, (self.operator_us - device.launch_us) / rounds)


def code_hash(kernel: ScheduledKernel) -> str:
    """Identify the code of a kernel: equal where its function and its packed layouts are equal, whatever its name."""
    packs = sorted((param, _told(pack)) for param, pack in kernel.packs.items())
    return hashlib.sha256(f"{structural_key(kernel.func)}{packs}".encode()).hexdigest()[:16]


def _told(pack: Pack) -> dict[str, object]:
    """A pack without what it does not do: so code that was measured before packs could do it is known still."""
    return {name: value for name, value in asdict(pack).items() if value is not None}


class Measurements(Protocol):
    """A tuning log that is open for reading (`tuning.log.reader.TuningLog`)."""

    def measured(self, function: Function) -> Mapping[Tiling, MeasuredTime]:
        """The tilings of a function that were measured on its device."""

    def kernels(self, function: Function) -> tuple[ScheduledKernel, ...]:
        """Measured kernels that no rule of this package constructs."""
