"""The cost model: the only place where the scheduler learns about time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from ..device import DeviceSpec
from ..ir import RKernel, RProgram, Run
from .predict.reuse import Caches

_PASSED_WAIT = 0.1
"""A wait for an event that is complete costs this part of a signal (H100, measured by others: 60 ns of 0.6 us)."""

_BRIEF_WAKE = 0.2
"""A brief program (`RProgram.brief`) wakes nobody. It looks whether other workers are awake, and runs on its caller
alone where none is: that risks this part of what waking takes."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs in microseconds; a parameter of the scheduler and the simulator, so that tests can choose it.

    An edge between two rTasks costs nothing on one vEU, `signal_us` through a counter, `barrier_us` through a
    barrier over all vEUs, `launch_us` through the end of a program and the launch of the next.

    Parameters
    ----------
    launch_us : float
        Start of one rProgram.
    signal_us : float
        From a `Signal` to the end of a wait for it on another vEU.
    wait_us : float
        A `Wait` for an event that is already complete.
    barrier_us : float, optional
        From the last vEU that reaches a barrier until all leave it; without it a barrier costs as much as a signal.
    shared_gbps : float, optional
        What all running rTasks together can move beyond their units, in GB/s. When they demand more, the
        simulator slows down all that move anything by the same factor. Without it they do not contend.
        Policies plan with times without contention.
    factors : mapping of str to float
        By the kernel's name, how many times as long as predicted its rTasks take; 1 where it is missing.
    wake_us : float
        What it takes until the vEUs beyond the first take part in a program; 0 where they are launched together.
    caches : Caches, optional
        With them a `Run` takes longer where its constants are no longer in its vEU's own cache. The simulator heeds
        them; policies plan with times of warm caches.
    """

    launch_us: float = 0.0
    signal_us: float = 0.0
    wait_us: float = 0.0
    barrier_us: float | None = None
    shared_gbps: float | None = None
    wake_us: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict)
    caches: Caches | None = None
    neighbours: int = 0

    @classmethod
    def of(cls, device: DeviceSpec, veus: int = 1, *, share: bool = False) -> Self:
        """Take the costs of a device.

        Parameters
        ----------
        device : DeviceSpec
        veus : int
            Of the plan: where they are more than a GPU has units, some share one.
        share : bool
            Whether running rTasks share the bandwidth of the last-level cache. Off by default: the predicted
            times of rTasks already count on a unit's even share of it, so sharing matters for measured ones.
        """
        return cls(
            device.launch_us,
            device.signal_us,
            device.signal_us * _PASSED_WAIT,
            device.barrier_us,
            device.cache_gbps if share else None,
            wake_us=device.wake_us,
            caches=Caches.of(device),
            neighbours=-(-veus // device.units) - 1 if device.kind == "cuda" and veus > device.units else 0,
        )

    def rtask_us(self, kernel: RKernel) -> float:
        """Time of one rTask on a vEU."""
        alone_us = kernel.rtask_us
        if self.neighbours:
            busy_us = alone_us if kernel.busy_us is None else min(kernel.busy_us, alone_us)
            alone_us += self.neighbours * busy_us
        return alone_us * self.factors.get(kernel.name, 1.0)

    def run_us(self, kernel: RKernel, run: Run) -> float:
        """Time of the rTasks of a `Run`, one after another; slices that are kept are read from the vEU's own memory."""
        factor = kernel.slices.factor if kernel.slices and run.kept is not None else 1.0
        return self.rtask_us(kernel) * run.count * factor

    def work_us(self, kernel: RKernel) -> float:
        """Time of all rTasks of an operator, one after another."""
        return self.rtask_us(kernel) * kernel.num_rtasks

    def operator_us(self, kernel: RKernel, veus: int) -> float:
        """Time of an operator, alone on `veus` vEUs."""
        return self.rtask_us(kernel) * -(-kernel.num_rtasks // veus)

    def wait_end_us(self, now_us: float, signalled_us: float) -> float:
        """When a wait ends that begins at `now_us`, if the last signal it needs is given at `signalled_us`."""
        return max(now_us + self.wait_us, signalled_us + self.signal_us)

    def barrier_end_us(self, last_us: float) -> float:
        """When all vEUs leave a barrier that the last of them reaches at `last_us`."""
        return last_us + (self.signal_us if self.barrier_us is None else self.barrier_us)

    def risk_us(self, program: RProgram, *, brief: bool) -> float:
        """What a program may take longer than predicted because its vEUs depend on each other.

        The vEUs beyond the first may have to be woken, which a brief program does not do, and each signal may come
        later by as much as it takes. Nothing on one vEU, or where all are launched together.
        """
        if len(program.lanes) < 2 or not self.wake_us:
            return 0.0
        woken_us = self.wake_us * (_BRIEF_WAKE if brief else 1.0)
        return woken_us + self.signal_us * program.waits() * program.steps
