"""The cost model of a CPU core: the larger of an rTask's arithmetic and its memory traffic.

A roofline (Williams et al., CACM 2009) with two corrections: with few accumulators the multiply-add units stall, and
each rTask has a fixed cost. The constants were fitted to an AMD EPYC of family 26.
"""

from dataclasses import dataclass

from ...device import DeviceSpec
from ..analysis.work import Work

RTASK_US = 0.05
"""Fixed cost of an rTask: its call, and the latency of its first instructions."""
CONTRACTION_EFFICIENCY = 0.85
"""Share of the multiply-add units' peak that the inner loop of a contraction reaches."""
FULL_ACCUMULATORS = 9.5
"""With fewer vectors of accumulators the two multiply-add units stall: each has a latency of four cycles."""
WEIGHT_CYCLES = 1.5
"""Cycles to load a vector of weights that is not in the first-level cache."""
SPLIT_LOAD_CYCLES, SPLIT_BROADCAST_CYCLES = 0.3, 0.6
"""Cycles that the load of a vector and a broadcast take from the multiply-adds of a core that computes a vector of 32
bytes in two halves: they are two operations each (fitted to an AMD EPYC of family 23, model 1)."""
LOADS_OF_BYTES = {32: 1.3}
"""Loads that a core does in a cycle beside its multiply-adds, by the bytes of a vector, where they were fitted (to an
AMD EPYC of family 25); else they are the device's."""
KEPT_SHARE = 0.75
"""The share of a core's own cache that keeps what is read again: from one register tile, or block of filters, to the
next, or from one run to the next. Of data that fill it twice as far nothing is kept (measured on a Xeon: at 1 MB of a
cache of 2 MB all, at 4 MB nothing, about two thirds between)."""
LINE_BYTES = 64
"""Of a cache line."""
LINE_INSTRUCTIONS = 13.0
"""Instructions of the step that `DeviceSpec.line_ns` is the time of: a load, and a multiply-add of each pixel."""
PRIVATE_CACHE_CYCLES = 0.02
"""Cycles for each byte that a core reads or writes in its own second-level cache."""
FIRST_CACHE_BYTES = 32768
"""What a core's first-level cache holds."""
NOT_OVERLAPPED = 0.2
"""The part of the shorter one of a contraction's arithmetic and traffic that does not overlap with the other."""
HIDDEN = 0.1
"""The part of stalls that is seen even where multiply-adds are so slow that they hide them."""
REFILL_SLOWDOWN, MAX_STREAMS = 0.14, 4
"""Relative slowdown of refilling weights for each pixel that a vector of them is multiplied by, since the core then has
fewer loads in flight; and how many streams of weights are prefetched in parallel."""

STORE_CYCLES, SCATTER_CYCLES = 2.0, 2.0
"""Cycles to store a vector of results; and to store one result, where a vector is not contiguous in the output."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """A contraction's register tile, and the results that are stored.

    Parameters
    ----------
    vectors, pixels : int
        Extents: each step loads `vectors` vectors and broadcasts `pixels` values.
    simd : int
        Elements of a vector.
    results : int
        Elements of the operator's output.
    scattered : bool
        Whether the elements of a vector are not contiguous in the output.
    lines : float
        Cache lines of an image of many channels that are read, again for each block of vectors, where no core's cache
        holds the image; else 0.
    """

    vectors: int
    pixels: int
    simd: int
    results: int
    scattered: bool
    lines: float = 0.0


def fma_vectors(simd: int, device: DeviceSpec) -> float:
    """Multiply-adds of vectors of `simd` elements of float32 that a core begins in a cycle."""
    return min(2.0, device.flops_per_cycle / (2 * simd))


def split_cycles(vectors: int, broadcasts: int, simd: int, device: DeviceSpec) -> float:
    """Cycles that so many loads of vectors and broadcasts take beside multiply-adds, where these come in two halves."""
    if simd * 4 != 32 or fma_vectors(simd, device) > 1:
        return 0.0
    return vectors * SPLIT_LOAD_CYCLES + broadcasts * SPLIT_BROADCAST_CYCLES


def loads_per_cycle(device: DeviceSpec) -> float:
    """Loads of vectors and of broadcast elements that a core does in a cycle, beside two multiply-adds."""
    return LOADS_OF_BYTES.get(device.vector_bytes, device.loads_per_cycle)


def step_cycles(multiply_adds: float, efficiency: float, device: DeviceSpec) -> float:
    """Cycles of a step of a register tile.

    Parameters
    ----------
    multiply_adds : float
        Cycles that its multiply-adds take.
    efficiency : float
        The share of their peak that steps reach where nothing else is known of the device.
    """
    return max(multiply_adds / efficiency, multiply_adds + device.step_cycles)


def far_cycles(instructions: float, device: DeviceSpec) -> float:
    """Cycles from a cache line to the next, each on another page, that steps read from beyond a core's own cache.

    The processor foresees no such line. How many are under way is a matter of how many steps are: its window holds so
    many instructions.

    Parameters
    ----------
    instructions : float
        Loads and multiply-adds of a step.
    """
    return device.line_ns * device.clock_ghz * instructions / LINE_INSTRUCTIONS


def contraction_us(work: Work, rtasks: int, tile: RegisterTile, device: DeviceSpec) -> float:
    """Time of one rTask of a convolution or matrix product, in microseconds, with warm caches."""
    size = tile.vectors * tile.pixels
    rate = fma_vectors(tile.simd, device)
    # A vector of weights is used for all pixels of the register tile.
    loads = (tile.vectors + tile.pixels) / size * 2 / loads_per_cycle(device)
    stalls = max(1.0, FULL_ACCUMULATORS / size, loads, 2 * WEIGHT_CYCLES / tile.pixels)
    slowed = max(1.0, rate / 2 * stalls) * (1.0 + HIDDEN * (1 - rate / 2) * stalls)
    peak = 2 * tile.simd * rate * CONTRACTION_EFFICIENCY / slowed
    cycles = work.flops / peak + tile.results * (SCATTER_CYCLES if tile.scattered else STORE_CYCLES / tile.simd)
    # A tile of few pixels waits for lines that the next ones find: what some wait for, the others' sums do not hide.
    cycles += tile.lines * far_cycles(size + tile.vectors + tile.pixels, device)
    compute = cycles / rtasks / (device.clock_ghz * 1e3)
    traffic = traffic_us(work.nbytes, work.nbytes / rtasks, rtasks, device)
    return RTASK_US + max(compute, traffic) + NOT_OVERLAPPED * min(compute, traffic)


def refill_us(weights: float, data: float, tile: RegisterTile | None, device: DeviceSpec) -> float:
    """Extra time of an rTask, in microseconds, if it reads its inputs from the last-level cache.

    Parameters
    ----------
    weights, data : float
        Bytes that it reads of each: other operators evicted the weights, and other cores wrote the data.
    tile : RegisterTile or None
        The register tile; None where weights are not read in vectors.
    """
    slowed = 1.0 + REFILL_SLOWDOWN * tile.pixels / min(tile.vectors, MAX_STREAMS) if tile else 1.0
    return (weights * slowed + data) * device.units / (device.cache_gbps * 1e3)


def traffic_us(resident: float, nbytes: float, rtasks: int, device: DeviceSpec) -> float:
    """Time that a core takes to read or write `nbytes` bytes, in microseconds.

    Parameters
    ----------
    resident : float
        Bytes that the whole operator touches, an equal part on each core: they decide which cache holds them when the
        operator runs repeatedly. Evictions by other operators of a model are left to the scheduler.
    nbytes : float
        Of one rTask.
    rtasks : int
        Of the operator: with fewer than there are cores, fewer own caches hold its bytes.
    device : DeviceSpec
    """
    private_us = PRIVATE_CACHE_CYCLES / (device.clock_ghz * 1e3)
    return _by_cache(resident, nbytes, nbytes * private_us, rtasks, device)


def stream_us(read: float, written: float, rtasks: int, device: DeviceSpec) -> float:
    """Time that an rTask takes to read and write its part of so many bytes, one after another, in microseconds.

    As `traffic_us`, for a function that does little else: the core's own cache is as fast as it was measured, and a
    line that is written is read before.

    Parameters
    ----------
    read, written : float
        Bytes of the whole operator.
    """
    nbytes = read + written
    private_us = PRIVATE_CACHE_CYCLES / (device.clock_ghz * 1e3)
    if device.unit_gbps and nbytes / min(rtasks, device.units) > FIRST_CACHE_BYTES:
        private_us = max(private_us, 1 / (device.unit_gbps * 1e3))
    return _by_cache(nbytes, nbytes / rtasks, (read + 2 * written) / rtasks * private_us, rtasks, device)


def _by_cache(resident: float, nbytes: float, private_us: float, rtasks: int, device: DeviceSpec) -> float:
    """Time for `nbytes` bytes, which take `private_us` where a core's own cache holds its part of `resident` bytes."""
    if resident > device.cache_bytes:
        return nbytes / (device.memory_gbps / device.units * 1e3)
    full = resident / max(1, min(rtasks, device.units) * device.unit_bytes)
    beyond = min(1.0, max(0.0, (full - KEPT_SHARE) / KEPT_SHARE))
    shared_us = max(private_us, nbytes * device.units / (device.cache_gbps * 1e3))
    return private_us + beyond * (shared_us - private_us)
