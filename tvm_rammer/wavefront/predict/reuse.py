"""What is still in a cache when a vEU reads it again: weights, as recurrent nets do in every step, and data."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ...device import DeviceSpec
from ...ir import RGraph, RKernel, RProgram, Run
from ..units import GBPS

_CERTAIN, _POSSIBLE = 0.75, 1.5
"""Data of a reuse distance up to this part of a cache's size hits; up to the second, half of it does."""


@dataclass(frozen=True, slots=True)
class Caches:
    """Two levels of caches and the memory behind them, as one vEU sees them.

    Parameters
    ----------
    unit_bytes, shared_bytes : int
        Size of a vEU's own cache, and of the one that all share.
    unit_gbps, shared_gbps, memory_gbps : float
        What one vEU reads from them and from memory, in GB/s.
    units : int
        Cores with a cache of their own: the times of rTasks count on as many of them as an operator has rTasks.
    """

    unit_bytes: int
    shared_bytes: int
    unit_gbps: float
    shared_gbps: float
    memory_gbps: float
    units: int = 1

    @classmethod
    def of(cls, device: DeviceSpec) -> "Caches | None":
        """The caches of a device; None where a unit's own cache keeps nothing from one rTask to the next."""
        if not device.unit_gbps:
            return None
        return cls(
            device.unit_bytes,
            device.cache_bytes,
            device.unit_gbps,
            device.cache_gbps / device.units,
            device.memory_gbps / device.units,
            device.units,
        )

    def read_us(self, nbytes: float, unit_hits: float, shared_hits: float) -> float:
        """Time to read bytes of which a part hits in the own cache, and of the rest a part in the shared one."""
        miss = shared_hits / self.shared_gbps + (1.0 - shared_hits) / self.memory_gbps
        return nbytes * (unit_hits / self.unit_gbps + (1.0 - unit_hits) * miss) / GBPS

    def warm_us(self, nbytes: float, buffer_bytes: int, rtasks: int) -> float:
        """Time to read a part of a buffer that nothing evicts: as `rkernel_gen.cpu.cost` predicts it."""
        own = min(rtasks, self.units) * self.unit_bytes
        return self.read_us(nbytes, buffer_bytes <= own, buffer_bytes <= self.shared_bytes)

    def stream_us(self, nbytes: float) -> float:
        """Time to read and write data in their order, again and again."""
        kept = (nbytes <= _CERTAIN * self.unit_bytes) + (nbytes <= _POSSIBLE * self.unit_bytes)
        return self.read_us(nbytes, kept / 2, nbytes <= self.shared_bytes)


class _LRU:
    """An ideal cache that evicts what was used least recently."""

    def __init__(self, capacity: float) -> None:
        self._free = capacity
        self._held: OrderedDict[Hashable, float] = OrderedDict()

    def use(self, key: Hashable, nbytes: float) -> bool:
        """Whether it hits; afterwards it is in the cache, unless it is too large."""
        before = self._held.pop(key, None)
        self._held[key] = nbytes
        self._free += (before or 0.0) - nbytes
        while self._free < 0:
            self._free += self._held.popitem(last=False)[1]
        return before is not None


class _Cache:
    """One cache: hits are estimated, since caches do not exactly evict what was used least recently."""

    def __init__(self, capacity: int) -> None:
        self._certain, self._possible = _LRU(_CERTAIN * capacity), _LRU(_POSSIBLE * capacity)

    def use(self, key: Hashable, nbytes: float) -> float:
        """The part of some data that hits."""
        return (self._certain.use(key, nbytes) + self._possible.use(key, nbytes)) / 2


def refill_us(program: RProgram, caches: Caches, order: Iterable[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """How much longer each `Run` takes than its rTasks in warm caches, if the program runs again and again.

    Constants that have left the caches are waited for. Other data are read in the order in which they lie, and so
    beside the arithmetic: where those of a `Run` are more than its vEU's own cache keeps, it takes as long as the
    slower of both. Fewer are taken for found there, whatever ran before: most were just written, or lie where others
    were.

    Parameters
    ----------
    program : RProgram
    caches : Caches
    order : iterable of (int, int)
        All `Run`s, as lane and instruction, in the order in which they begin.

    Returns
    -------
    dict of (int, int) to float
        By lane and instruction, in microseconds.
    """
    touched = [_touched(program.graph, o, kernel) for o, kernel in enumerate(program.kernels)]
    shared, own = _Cache(caches.shared_bytes), [_Cache(caches.unit_bytes) for _ in program.lanes]
    refill: dict[tuple[int, int], float] = {}
    runs = [(lane, n, run) for lane, n in order if isinstance(run := program.lanes[lane][n], Run)]
    # Twice, so that the program finds what its last run left behind.
    for lane, n, run in (*runs, *runs):
        kernel, waits_us, data = program.kernels[run.operator], 0.0, 0.0
        for buffer, nbytes, part in touched[run.operator]:
            read = part * run.count
            unit_hits = own[lane].use((buffer, kernel.num_rtasks, run.start, run.count, run.step), read)
            shared_hits = shared.use(buffer, nbytes)
            if program.graph.buffers[buffer].kind == "constant":
                warm_us = caches.warm_us(read, nbytes, kernel.num_rtasks)
                waits_us += max(0.0, caches.read_us(read, unit_hits, shared_hits) - warm_us)
            else:
                data += read
        refill[lane, n] = waits_us + max(0.0, caches.stream_us(data) - kernel.rtask_us * run.count)
    return refill


def _touched(graph: RGraph, operator: int, kernel: RKernel) -> list[tuple[int, int, float]]:
    """Each buffer of an operator, its size, and the even part of it that an rTask touches."""
    op = graph.operators[operator]
    sizes = [(b, graph.buffers[b].nbytes) for b in (*op.inputs, *op.outputs)]
    return [(b, nbytes, nbytes / kernel.num_rtasks) for b, nbytes in sizes]
