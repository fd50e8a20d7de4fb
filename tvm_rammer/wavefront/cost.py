"""What things cost: the only place where the scheduler learns about time."""

from dataclasses import dataclass
from typing import Self

from ..device import DeviceSpec
from ..ir import RKernel, Run

_PASSED_WAIT = 0.1
"""A wait whose event has come costs this part of a signal (H100, measured by others: 60 ns of 0.6 us)."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Prices in microseconds; a parameter of the scheduler and the simulator, so that tests can choose it.

    Parameters
    ----------
    launch_us : float
        Start of one rProgram.
    signal_us : float
        From a `Signal` to the lane that waits for it going on.
    wait_us : float
        A `Wait` whose event has already come.
    """

    launch_us: float = 0.0
    signal_us: float = 0.0
    wait_us: float = 0.0

    @classmethod
    def of(cls, device: DeviceSpec) -> Self:
        """Take the prices of a device."""
        return cls(device.launch_us, device.signal_us, device.signal_us * _PASSED_WAIT)

    def rtask_us(self, kernel: RKernel) -> float:
        """Time of one rTask on a vEU."""
        return kernel.rtask_us

    def run_us(self, kernel: RKernel, run: Run) -> float:
        """Time of the rTasks of a `Run`, one after another."""
        return self.rtask_us(kernel) * run.count

    def operator_us(self, kernel: RKernel, veus: int) -> float:
        """Time of a whole operator, alone on `veus` vEUs."""
        return self.rtask_us(kernel) * -(-kernel.num_rtasks // veus)

    def passed_us(self, now_us: float, signalled_us: float) -> float:
        """When a wait ends that a lane begins at `now_us`, if the last signal it needs is given at `signalled_us`."""
        return max(now_us + self.wait_us, signalled_us + self.signal_us)
