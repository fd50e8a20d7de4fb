"""What one rTask costs on a streaming multiprocessor, predicted from its tile.

    time = steps x LATENCY_US + max(operations / rate, bytes / bandwidth)

A step is a trip to memory that all threads wait for: a tile of K, or a pass over the inputs. The rate is the
unit's peak x an efficiency: threads that hide the multiply-add's latency, and operands that come from registers.
The bandwidth is the unit's share of the last-level cache's. Good for ranking tilings; measure to know.
"""

from dataclasses import dataclass

import tvm
from tvm import s_tir, tirx

from ..device import DeviceSpec
from ..ir import ITEM_BYTES

LATENCY_US = 0.5
"""A load from the cache or memory, a store to shared memory, and a barrier."""

IN_FLIGHT = 512
"""Multiply-adds that a unit must have under way to be busy: 4 cycles of latency x 128 lanes."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations and bytes (each buffer once) of a whole function."""

    flops: float
    nbytes: int

    @classmethod
    def of(cls, func: tirx.PrimFunc) -> "Work":
        """Count an unscheduled function's work."""
        flops = s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func}))
        nbytes = 0
        for param in func.params:
            elements = 1
            for extent in param.shape:
                elements *= int(extent)
            nbytes += elements * ITEM_BYTES[str(param.dtype)]
        return cls(max(flops, 1.0), nbytes)


def rtask_us(
    device: DeviceSpec,
    threads: int,
    flops: float,
    nbytes: float,
    *,
    steps: int = 1,
    outputs: int = 1,
    reuse: float = 0.5,
) -> float:
    """Time of one rTask in microseconds, alone on a unit.

    Parameters
    ----------
    device : DeviceSpec
    threads : int
        Threads of the rTask.
    flops, nbytes : float
        Operations, and bytes that it moves from or to beyond the unit.
    steps : int
        Trips to memory, one after another.
    outputs : int
        Independent results that a thread works on.
    reuse : float
        Multiply-adds for each operand that a thread loads.
    """
    efficiency = 0.8 * min(1.0, threads * outputs / IN_FLIGHT) * min(1.0, reuse)
    compute = flops / (device.flops_per_cycle * device.clock_ghz * 1e3 * efficiency)
    traffic = nbytes / (device.cache_gbps / device.units * 1e3)
    return steps * LATENCY_US + max(compute, traffic)
