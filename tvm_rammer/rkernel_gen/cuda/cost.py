"""The micro performance model of a GPU: predicts the time of one rTask on a streaming multiprocessor from its tile.

    time = START_US + steps x STEP_US + max(operations / rate, shared bytes / bandwidth, global bytes / bandwidth, loop)

As in Roller (OSDI 2022, section 3.3) each level of memory has its traffic and its bandwidth, and the slowest counts.
A step is a memory latency that all threads wait for: a tile of K, or a pass over the inputs. The rate is the unit's
peak times an efficiency, which is low where too few multiply-adds are in flight to hide their latency. The global
bandwidth of a unit is its share of the last-level cache's bandwidth, at most that of its own port to the cache. A loop
whose loads are a step ahead is counted in cycles (`loop_cycles`). The model is made to rank tilings. Its constants were
fitted to kernels that were timed on an H200 (docs/gpu-results.md); of other GPUs nothing is known.
"""

from dataclasses import dataclass

from ...device import DeviceSpec

START_US = 0.4
"""The first load of an rTask, from memory, and its last store."""

STEP_US = 0.2
"""A load from the cache, a store to shared memory, and a barrier."""

FMAS_IN_FLIGHT = 512
"""Multiply-adds in flight that keep a unit busy: 4 cycles of latency x 128 cores."""

SHARED_BYTES_PER_CYCLE = 128
"""Bandwidth of a unit's shared memory: 32 banks of 4 bytes."""

PORT_BYTES_PER_CYCLE = 64
"""Bandwidth of a unit's port to the last-level cache."""

SECTOR_BYTES = 32
"""What the last-level cache is read and written by."""

SCHEDULERS = 4
"""Warps of which a unit issues an instruction in the same cycle."""

WARP = 32
"""Threads of a warp."""

LATENCY_CYCLES = 400
"""A step of a loop at least, where the next step's loads are under way: a load from the cache, and what stages it."""

STEP_CYCLES = 330
"""What a step costs beside its instructions: barriers, and the pipelines that run empty and fill again."""

ISSUE_FACTOR = 1.2
"""Cycles of an instruction that is issued, on average: some wait for an earlier one."""

APART = 0.12
"""Of what is not the busiest: so much of it is not beside the busiest."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The work of one rTask of a tiling, as the model needs it.

    Parameters
    ----------
    num_rtasks : int
    threads : int
        Threads of an rTask.
    flops : float
        Operations of an rTask, those on padding included.
    nbytes : float
        Bytes that an rTask reads from and writes to global memory.
    shared_bytes : float
        Bytes that its threads read from shared memory; a broadcast within a warp counts once.
    steps : float
        Memory latencies that all threads wait for, one after another.
    outputs : int
        Independent results of a thread.
    gain : float
        How much faster than CUDA cores tensor cores do the arithmetic; 0 where they do not.
    cycles, busy_cycles : float
        Cycles of its loop, where the rule has counted its instructions; and those of them in which the unit is at work.
    """

    num_rtasks: int
    threads: int
    flops: float
    nbytes: float
    shared_bytes: float = 0.0
    steps: float = 1.0
    outputs: int = 1
    gain: float = 0.0
    cycles: float = 0.0
    busy_cycles: float = 0.0


def rtask_us(device: DeviceSpec, cost: Cost) -> float:
    """Time of one rTask in microseconds, alone on a unit."""
    gain = cost.gain or min(1.0, cost.threads * cost.outputs / FMAS_IN_FLIGHT)
    return START_US + cost.steps * STEP_US + max(_bounds_us(device, cost, gain, cost.cycles))


def busy_us(device: DeviceSpec, cost: Cost) -> float:
    """What of that time the unit works for it: so much longer its neighbours on the unit take."""
    return max(_bounds_us(device, cost, cost.gain or 1.0, cost.busy_cycles))


def _bounds_us(device: DeviceSpec, cost: Cost, gain: float, loop_cycles: float) -> tuple[float, ...]:
    """Arithmetic, shared memory, global memory and the loop, each by itself."""
    cycles = device.clock_ghz * 1e3  # of a microsecond
    return (
        cost.flops / (device.flops_per_cycle * cycles * 0.8 * gain),
        cost.shared_bytes / (SHARED_BYTES_PER_CYCLE * cycles),
        cost.nbytes / (port_bytes(device, cost.num_rtasks) * cycles),
        loop_cycles / cycles,
    )


def port_bytes(device: DeviceSpec, num_rtasks: int) -> float:
    """Bytes that a unit gets of the last-level cache in a cycle, while so many rTasks load."""
    return min(PORT_BYTES_PER_CYCLE, device.cache_gbps / device.clock_ghz / min(device.units, num_rtasks))


def loop_cycles(steps: int, warps: int, instructions: float, shared: float, loads: float) -> tuple[float, float]:
    """Cycles of a loop in which the loads of the next step are under way while one is computed.

    Its constants were fitted to kernels of products on an H200 whose threads are teams: the mean error is 9 %.

    Parameters
    ----------
    steps, warps : int
    instructions : float
        Of a warp in a step.
    shared : float
        Cycles that a warp's accesses of a step keep the shared memory busy: one for each 128 bytes.
    loads : float
        Cycles in which the bytes of a step come from the last-level cache.

    Returns
    -------
    tuple of float
        Cycles of all steps, and those in which what is busiest of the unit is at work.
    """
    issue = instructions * max(1.0, warps / SCHEDULERS)
    parts = (ISSUE_FACTOR * issue, shared * warps, loads)
    busiest = max(parts)
    cycles = busiest + APART * (sum(parts) - busiest) + STEP_CYCLES
    return steps * max(LATENCY_CYCLES, cycles), steps * busiest
