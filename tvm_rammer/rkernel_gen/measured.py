"""Times that were measured elsewhere: what `rkernel_gen` asks of a tuning log, whoever keeps it."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

import tvm_ffi

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .tiling import Function, Tiling

LONG = 10
"""An operator that takes so many launches is long."""


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """What a log knows of a tiling.

    Parameters
    ----------
    rtask_us, operator_us : float
        Time of one rTask alone, and of the operator on all units, in microseconds.
    code : str
        `code_hash` of the kernel that was measured: if the rule makes other code today, the times mean nothing.
    """

    rtask_us: float
    operator_us: float
    code: str

    def alone_us(self, tiling: Tiling, device: DeviceSpec) -> float:
        """Time of one rTask while others like it keep all units busy, in microseconds.

        That is at least its time alone. The operator's time says more where rTasks share caches and bandwidth; but a
        launch is in it, whose own time varies by as much as small operators take.
        """
        rounds = -(-tiling.num_rtasks // device.units)
        if self.operator_us < LONG * device.launch_us:
            return self.rtask_us
        return max(self.rtask_us, (self.operator_us - device.launch_us) / rounds)


def code_hash(kernel: ScheduledKernel) -> str:
    """Name the code of a kernel: equal where its function and its packed layouts are equal, whatever it is called."""
    bare = kernel.func.without_attr("global_symbol")
    structure = tvm_ffi.structural_hash(bare, map_free_vars=True) & (2**64 - 1)
    packs = sorted((param, asdict(pack)) for param, pack in kernel.packs.items())
    return hashlib.sha256(f"{structure}{packs}".encode()).hexdigest()[:16]


class Measurements(Protocol):
    """A tuning log, opened to be read (`tuning.log.TuningLog`)."""

    def measured(self, function: Function) -> Mapping[Tiling, MeasuredTime]:
        """The tilings of a function that were measured on its device."""

    def kernels(self, function: Function) -> tuple[ScheduledKernel, ...]:
        """Measured kernels that no rule of this package constructs."""
