"""Measures this machine's processor: its clock, its multiply-adds, bandwidths of caches and memory, costs of signals.

The programs are made by TVM, as kernels are, so they have the target's vectors. Each is run many times for a
thousandth of a second or so, and the fastest run counts: other processes only make them slower. Figures are rounded:
the clock, cycles and loads to quarters, operations to a power of two, all others to a power of the square root of two.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..debug import say
from .cores import two_processors
from .exchange import exchanges, signal_us, wake_us
from .inner_loops import (
    APART,
    LINE,
    LONG,
    TILE_ROUNDS,
    TILE_STEPS,
    WIDE,
    line_ns,
    loads_per_cycle,
    step_cycles,
    tiles,
)
from .measured import Measured
from .programs import ACCUMULATORS, CHAIN, CHAIN_CYCLES, STEPS, STREAMS, dependent_chain, multiply_adds, reads
from .spec import DeviceSpec

if TYPE_CHECKING:
    import tvm

RUNS, SECONDS = 300, 0.3
"""Runs of a program, and time for all of them, at most."""
BYTES_READ = 4 << 20
"""Bytes that a run reads, at least."""
MEMORY_CACHES = 3
"""Memory is measured with a buffer of so many last-level caches."""
MOST_BYTES = 256 << 20
ALIGNED = 64
"""Bytes that the address of a tensor is a multiple of."""


def measure_cpu(device: DeviceSpec) -> Measured:
    """Measure the processor; takes a second or two.

    Parameters
    ----------
    device : DeviceSpec
        This machine's processor: its vectors, its caches and how many cores to use. Where they are not two, what
        signals cost is its, too.
    """
    say(1, "measuring this processor, once: its clock, its vectors, its caches")
    lanes = device.vector_bytes // 4
    functions = {"chain": dependent_chain(), "fma": multiply_adds(lanes), "read": reads(lanes)}
    functions |= tiles(lanes) | exchanges()
    programs = _compile(functions, device)
    chain, fma, read, wide, long, far, words, sleep, wake = (programs[name] for name in functions)
    clock_ghz = STEPS * CHAIN * CHAIN_CYCLES / _fastest(chain, _tensor(np.array([3, 5], "int64"))) / 1e9
    fma_s = _fastest(fma, _tensor(np.full((ACCUMULATORS + 2, lanes), 0.5, "float32"))) / (STEPS * ACCUMULATORS)
    flops = 2 * lanes / fma_s / 1e9
    flops_per_cycle = 2 ** max(1, round(math.log2(flops / clock_ghz)))
    rate = flops_per_cycle / (2 * lanes)

    def gbps(nbytes: int, cores: int = 1) -> float:
        return _gbps(read, nbytes, lanes, cores)

    beside, long_s = step_cycles(_tile_s(wide, lanes, *WIDE) / fma_s, rate), _tile_s(long, lanes, *LONG)
    pair, shared = two_processors(), _of_the_shared_cache(device)
    memory = min(MOST_BYTES, MEMORY_CACHES * device.cache_bytes)
    return Measured(
        clock_ghz=max(0.25, round(4 * min(clock_ghz, flops / flops_per_cycle)) / 4),
        flops_per_cycle=flops_per_cycle,
        step_cycles=beside,
        loads_per_cycle=loads_per_cycle(long_s / fma_s, rate, beside, device.loads_per_cycle),
        unit_gbps=_rounded(gbps(device.unit_bytes // 2)),
        core_cache_gbps=_rounded(gbps(shared)),
        line_ns=_rounded(line_ns(_far_ns(far, shared, lanes), long_s * 1e9)),
        memory_gbps=_rounded(max(gbps(memory), gbps(memory, device.units))),
        signal_us=_rounded(signal_us(words, pair)) if pair else device.signal_us,
        wake_us=_rounded(wake_us(sleep, wake, pair)) if pair else device.wake_us,
    )


def _of_the_shared_cache(device: DeviceSpec) -> int:
    """Bytes that are read to measure the last-level cache: more than a core has of its own, but not many times as much.

    What Linux says of that cache in a virtual machine is the whole of it, which others use, too.
    """
    return max(2 * device.unit_bytes, min(4 * device.unit_bytes, device.cache_bytes // 8))


def _tile_s(tile: Callable[..., object], lanes: int, count: int, pixels: int) -> float:
    """Seconds of a step of a register tile."""
    shapes = ((TILE_STEPS, count, lanes), (pixels, count, lanes), (TILE_STEPS, pixels))
    return _fastest(tile, *(_tensor(np.zeros(shape, "float32")) for shape in shapes)) / (TILE_STEPS * TILE_ROUNDS)


def _far_ns(tile: Callable[..., object], nbytes: int, lanes: int) -> float:
    """Nanoseconds of a step of the register tile `LONG` that reads a line of a buffer, each on another page."""
    (count, pixels), pages = LONG, -(-nbytes // (4 * APART * LINE * TILE_STEPS))
    weights, out = (_tensor(np.zeros((n, count, lanes), "float32")) for n in (TILE_STEPS, pixels))
    image = _large(pages * TILE_STEPS, APART * LINE)
    return _fastest(tile, weights, out, image, pages) / (pages * TILE_STEPS * APART) * 1e9


def _gbps(read: Callable[..., object], nbytes: int, lanes: int, cores: int) -> float:
    """The rate at which cores read `nbytes` bytes in all, again and again, each a part of its own, in GB/s."""
    count = nbytes // (4 * STREAMS * lanes * cores)
    repeats = max(1, BYTES_READ // nbytes)
    parts = [(_large(count * STREAMS * lanes), _tensor(np.zeros(lanes, "float32"))) for _ in range(cores)]

    def together() -> None:
        others = [threading.Thread(target=read, args=(*part, count, repeats)) for part in parts[1:]]
        for other in others:
            other.start()
        read(*parts[0], count, repeats)
        for other in others:
            other.join()

    return repeats * cores * count * STREAMS * lanes * 4 / _fastest(together) / 1e9


def _rounded(value: float) -> float:
    """The next power of the square root of two; 0 stays."""
    return 0.0 if value == 0 else float(f"{2 ** (round(2 * math.log2(value)) / 2):.3g}")


def _tensor(array: "np.ndarray[Any, Any]") -> Any:
    import tvm

    return tvm.runtime.tensor(array)


def _large(*shape: int) -> Any:
    """A tensor of zeros on large pages, as far as there are such, as constants and workspaces of programs are."""
    import tvm

    count = math.prod(shape)
    whole = np.empty(count + ALIGNED // 4, "float32")  # NumPy asks for large pages where an array may hold some
    start = -whole.ctypes.data % ALIGNED // 4
    whole[:] = 0.0
    return tvm.runtime.from_dlpack(whole[start : start + count].reshape(shape))


def _fastest(run: Callable[..., object], *arguments: object) -> float:
    """Seconds of the fastest of some runs."""
    best, end = math.inf, time.perf_counter() + SECONDS
    for _ in range(RUNS):
        begin = time.perf_counter()
        run(*arguments)
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            break
    return best


def _compile(functions: "dict[str, tvm.tirx.PrimFunc]", device: DeviceSpec) -> Any:
    import tvm

    named = {name: func.with_attr("global_symbol", name).with_attr("s_tir", True) for name, func in functions.items()}
    return tvm.compile(tvm.IRModule(named), tvm.target.Target(device.target_config()))
