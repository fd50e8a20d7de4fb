"""What an rTask costs on a CPU core, as predicted: the larger of its arithmetic and its traffic.

A roofline (Williams et al., CACM 2009) with two corrections: few accumulators leave the multiply-add
units waiting, and each rTask has a fixed price (its call, and loops that do not fill).
"""

import math
from dataclasses import dataclass

from tvm import s_tir, tirx

from ..device import DeviceSpec
from ..ir import ITEM_BYTES

RTASK_US = 0.2
"""Fixed price of an rTask."""

PLAIN_EFFICIENCY = 0.1
"""Share of the peak that code without a register tile reaches: pools, softmax, grouped convolutions."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a function does in all.

    Parameters
    ----------
    flops : float
    nbytes : int
        Bytes of all its parameters: read or written once.
    """

    flops: float
    nbytes: int

    @staticmethod
    def of(func: tirx.PrimFunc) -> "Work":
        """Count the operations and the bytes of a function."""
        nbytes = sum(math.prod(int(s) for s in p.shape) * ITEM_BYTES[str(p.dtype)] for p in func.params)
        return Work(float(s_tir.analysis.estimate_tir_flops(func.body)), nbytes)


def contraction_us(work: Work, rtasks: int, vectors: int, pixels: int, lanes: int, device: DeviceSpec) -> float:
    """Time of one rTask of a convolution or matrix product, in microseconds.

    Parameters
    ----------
    vectors, pixels : int
        Extents of the register tile: so many loads and broadcasts for each of their products.
    lanes : int
        Elements of a vector.
    """
    filled = lanes * 4 / device.vector_bytes
    # Two multiply-adds or two loads a cycle; with too few accumulators, one round in four cycles.
    slowed = max(1.0, 8 / (vectors * pixels), (vectors + pixels) / (vectors * pixels))
    efficiency = 0.6 * min(1.0, filled) / slowed
    return RTASK_US + max(_compute_us(work, rtasks, efficiency, device), _traffic_us(work, rtasks, device))


def plain_us(work: Work, rtasks: int, device: DeviceSpec, *, recomputed: float = 1.0) -> float:
    """Time of one rTask of anything else, in microseconds.

    Parameters
    ----------
    recomputed : float
        How many times the function's operations are done, over all rTasks.
    """
    compute = recomputed * _compute_us(work, rtasks, PLAIN_EFFICIENCY, device)
    return RTASK_US + max(compute, _traffic_us(work, rtasks, device))


def _compute_us(work: Work, rtasks: int, efficiency: float, device: DeviceSpec) -> float:
    return work.flops / rtasks / (device.flops_per_cycle * device.clock_ghz * 1e3 * efficiency)


def _traffic_us(work: Work, rtasks: int, device: DeviceSpec) -> float:
    gbps = device.cache_gbps if work.nbytes <= device.cache_bytes else device.memory_gbps
    return work.nbytes / rtasks / (gbps / device.units * 1e3)
