"""What an rTask costs on a CPU core, as predicted: the larger of its arithmetic and its traffic.

A roofline (Williams et al., CACM 2009) with two corrections: few accumulators leave the multiply-add
units waiting, and each rTask has a fixed price. The constants were fitted to an AMD EPYC of family 26.
"""

import functools
import math
from dataclasses import dataclass

from tvm import s_tir, tirx

from ...device import DeviceSpec
from ...ir import ITEM_BYTES

RTASK_US = 0.05
"""Fixed price of an rTask: its call, and what its first instructions wait for."""
CONTRACTION_EFFICIENCY = 0.85
"""Share of the multiply-add units' peak that the inner loop of a contraction reaches."""
ACCUMULATORS = 9.5
"""Fewer vectors of accumulators leave the multiply-add units waiting: each of two is busy for four cycles."""
FIRST_LEVEL_BYTES = 32 << 10
"""Room in the first-level cache for what is read again and again."""
WEIGHT_CYCLES = 1.5
"""What a vector of weights costs that comes from beyond the first-level cache."""
NEAR_CYCLES, FAR_CYCLES = 0.02, 0.035
"""Cycles for each byte that a core reads or writes, within its own cache and beyond it."""
SHOWS = 0.2
"""The part of a contraction's arithmetic that its traffic does not hide, or the other way round."""
LATE_PIXELS, MOST_STREAMS = 0.14, 4
"""How much longer a core waits for weights from afar, for each pixel that a vector of them is multiplied by, since it
sees fewer loads ahead; and how many streams of them are fetched side by side."""

STORE_CYCLES, SCATTER_CYCLES = 2.0, 2.0
"""Cycles to store a vector of results; and each result, where vectors are not contiguous in the output."""


@dataclass(frozen=True, slots=True)
class Register:
    """A contraction's register tile, and what leaves it.

    Parameters
    ----------
    vectors, pixels : int
        Extents: so many loads and broadcasts for each of their products.
    lanes : int
        Elements of a vector.
    results : int
        Elements of the output.
    scattered : bool
        Whether the elements of a vector are no neighbours in the output.
    """

    vectors: int
    pixels: int
    lanes: int
    results: int
    scattered: bool


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
    @functools.lru_cache(maxsize=64)  # asked for each tiling
    def of(func: tirx.PrimFunc) -> "Work":
        """Count the operations and the bytes of a function."""
        nbytes = sum(math.prod(int(s) for s in p.shape) * ITEM_BYTES[str(p.dtype)] for p in func.params)
        return Work(float(s_tir.analysis.estimate_tir_flops(func.body)), nbytes)


def contraction_us(work: Work, rtasks: int, tile: Register, device: DeviceSpec) -> float:
    """Time of one rTask of a convolution or matrix product, in microseconds; its weights are where it left them."""
    size = tile.vectors * tile.pixels
    filled = min(1.0, tile.lanes * 4 / device.vector_bytes)
    # Two multiply-adds or two loads a cycle; a vector of weights is used for all pixels of the register tile.
    loads = (tile.vectors + tile.pixels) / size
    slowed = max(1.0, ACCUMULATORS / size, loads, 2 * WEIGHT_CYCLES / tile.pixels)
    peak = device.flops_per_cycle * CONTRACTION_EFFICIENCY * filled / slowed
    cycles = work.flops / peak + tile.results * (SCATTER_CYCLES if tile.scattered else STORE_CYCLES / tile.lanes)
    compute = cycles / rtasks / (device.clock_ghz * 1e3)
    traffic = traffic_us(work.nbytes, work.nbytes / rtasks, device)
    return RTASK_US + max(compute, traffic) + SHOWS * min(compute, traffic)


def late_us(weights: float, data: float, tile: Register | None, device: DeviceSpec) -> float:
    """How much longer an rTask takes, in microseconds, if what it reads comes from the last-level cache.

    Parameters
    ----------
    weights, data : float
        Bytes that it reads of each: other operators pushed the weights out, and other cores wrote the data.
    tile : Register or None
        What is done with each vector of weights; None where weights are no vectors.
    """
    slowed = 1.0 + LATE_PIXELS * tile.pixels / min(tile.vectors, MOST_STREAMS) if tile else 1.0
    return (weights * slowed + data) * device.units / (device.cache_gbps * 1e3)


def traffic_us(resident: float, nbytes: float, device: DeviceSpec) -> float:
    """Time that a core takes to read or write so many bytes, in microseconds.

    Parameters
    ----------
    resident : float
        Bytes that the whole operator touches, an even part on each core: they decide which cache holds them when it
        runs again and again. What a model's other operators push out is the scheduler's business.
    """
    if resident > device.cache_bytes:
        return nbytes / (device.memory_gbps / device.units * 1e3)
    cycles = NEAR_CYCLES if resident <= device.units * device.unit_bytes else FAR_CYCLES
    return nbytes * cycles / (device.clock_ghz * 1e3)
