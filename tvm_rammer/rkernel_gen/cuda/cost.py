"""The micro performance model of a GPU: what one rTask costs on a streaming multiprocessor, told from its tile.

    time = START_US + steps x STEP_US + max(operations / rate, shared bytes / bandwidth, bytes beyond / bandwidth)

As in Roller (OSDI 2022, section 3.3) each level of memory has its traffic and its bandwidth, and the slowest counts.
A step is a trip to memory that all threads wait for: a tile of K, or a pass over the inputs. The rate is the unit's
peak x an efficiency: enough multiply-adds under way to hide their latency. Beyond the unit it gets its share of the
last-level cache's bandwidth, or what its own port takes where few rTasks run. Good for ranking; measure to know.
"""

from dataclasses import dataclass

import tvm
from tvm import s_tir, tirx

from ...device import DeviceSpec
from ...ir import ITEM_BYTES

START_US = 0.5
"""The first load of an rTask, from memory, and its last store."""

STEP_US = 0.2
"""A load from the cache, a store to shared memory, and a barrier."""

IN_FLIGHT = 512
"""Multiply-adds that a unit must have under way to be busy: 4 cycles of latency x 128 lanes."""

SHARED_BYTES_A_CYCLE = 128
"""What a unit's shared memory delivers: 32 banks of 4 bytes."""

PORT_BYTES_A_CYCLE = 64
"""What a unit takes from beyond it at most."""

TENSOR_CORE_GAIN = 8
"""How much faster tensor cores multiply half-precision matrices than the other cores do single-precision ones."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the rTasks of a tiling do.

    Parameters
    ----------
    num_rtasks : int
    threads : int
        Threads of an rTask.
    flops : float
        Operations of an rTask, wasted ones included.
    nbytes : float
        Bytes that an rTask moves from or to beyond its unit.
    shared_bytes : float
        Bytes that its threads read from shared memory, those that a warp reads together counted once.
    steps : float
        Trips to memory, one after another.
    outputs : int
        Independent results that a thread works on.
    tensor_cores : bool
    """

    num_rtasks: int
    threads: int
    flops: float
    nbytes: float
    shared_bytes: float = 0.0
    steps: float = 1.0
    outputs: int = 1
    tensor_cores: bool = False


def rtask_us(device: DeviceSpec, cost: Cost) -> float:
    """Time of one rTask in microseconds, alone on a unit."""
    cycles = device.clock_ghz * 1e3  # a microsecond
    gain = TENSOR_CORE_GAIN if cost.tensor_cores else min(1.0, cost.threads * cost.outputs / IN_FLIGHT)
    compute = cost.flops / (device.flops_per_cycle * cycles * 0.8 * gain)
    shared = cost.shared_bytes / (SHARED_BYTES_A_CYCLE * cycles)
    share = device.cache_gbps * 1e3 / min(device.units, cost.num_rtasks)
    beyond = cost.nbytes / min(PORT_BYTES_A_CYCLE * cycles, share)
    return START_US + cost.steps * STEP_US + max(compute, shared, beyond)


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of a whole function; bytes of its buffers, each once, and of the largest one."""

    flops: float
    nbytes: int
    largest: int

    @classmethod
    def of(cls, func: tirx.PrimFunc) -> "Work":
        """Count an unscheduled function's work."""
        flops = s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func}))
        sizes = [_nbytes(param) for param in func.params]
        return cls(max(flops, 1.0), sum(sizes), max(sizes))


def _nbytes(param: tirx.Var) -> int:
    elements = 1
    for extent in param.shape:
        elements *= int(extent)
    return elements * ITEM_BYTES[str(param.dtype)]
