"""Where a vEU finds the weights that it reads: recurrent nets read the same ones again and again."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ...device import DeviceSpec
from ...ir import RGraph, RKernel, RProgram, Run

_BYTES_PER_US = 1e3
"""One GB/s in bytes a microsecond."""

_SURE, _PERHAPS = 0.75, 1.5
"""What was among the last so many parts of a cache's size is still there; up to the second one, half of it is."""


@dataclass(frozen=True, slots=True)
class Caches:
    """Two levels of caches and the memory behind them, as one vEU sees them.

    Parameters
    ----------
    unit_bytes, shared_bytes : int
        Size of a vEU's own cache, and of the one that all share.
    unit_gbps, shared_gbps, memory_gbps : float
        What one vEU reads from them and from memory, in GB/s.
    """

    unit_bytes: int
    shared_bytes: int
    unit_gbps: float
    shared_gbps: float
    memory_gbps: float

    @classmethod
    def of(cls, device: DeviceSpec) -> "Caches | None":
        """The caches of a device; None where a unit's own memory keeps nothing from one rTask to the next."""
        if not device.unit_gbps:
            return None
        return cls(
            device.unit_bytes,
            device.cache_bytes,
            device.unit_gbps,
            device.cache_gbps / device.units,
            device.memory_gbps / device.units,
        )

    def read_us(self, nbytes: float, near: float, shared: float) -> float:
        """Time to read bytes of which a part is in the own cache, and of the rest a part in the shared one."""
        far = shared / self.shared_gbps + (1.0 - shared) / self.memory_gbps
        return nbytes * (near / self.unit_gbps + (1.0 - near) * far) / _BYTES_PER_US

    def alone_us(self, nbytes: float, buffer_bytes: int, lanes: int) -> float:
        """Time to read a part of a buffer that nobody pushes out: as `rkernel_gen.cpu.cost` predicts it."""
        return self.read_us(nbytes, buffer_bytes <= lanes * self.unit_bytes, buffer_bytes <= self.shared_bytes)


class _Recent:
    """What was used last, up to a size in bytes."""

    def __init__(self, capacity: float) -> None:
        self._room = capacity
        self._held: OrderedDict[Hashable, float] = OrderedDict()

    def use(self, key: Hashable, nbytes: float) -> bool:
        """Whether it was there; it is now, if it is not too large."""
        before = self._held.pop(key, None)
        self._held[key] = nbytes
        self._room += (before or 0.0) - nbytes
        while self._room < 0:
            self._room += self._held.popitem(last=False)[1]
        return before is not None


class _Cache:
    """One cache: what is still there is a guess, since caches do not simply drop what was used least recently."""

    def __init__(self, capacity: int) -> None:
        self._sure, self._perhaps = _Recent(_SURE * capacity), _Recent(_PERHAPS * capacity)

    def use(self, key: Hashable, nbytes: float) -> float:
        """The part of something that is still there."""
        return (self._sure.use(key, nbytes) + self._perhaps.use(key, nbytes)) / 2


def late_us(program: RProgram, caches: Caches, order: Iterable[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """How much longer each `Run` reads its constants than alone, if the program runs again and again.

    Only constants count: as a rule they alone are read more than once by the same vEU. All else takes its room.

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
    parts = [_parts(program.graph, o, kernel) for o, kernel in enumerate(program.kernels)]
    shared, own = _Cache(caches.shared_bytes), [_Cache(caches.unit_bytes) for _ in program.lanes]
    late: dict[tuple[int, int], float] = {}
    runs = [(lane, n, run) for lane, n in order if isinstance(run := program.lanes[lane][n], Run)]
    # Twice, so that the program finds what its last run left behind.
    for lane, n, run in (*runs, *runs):
        late[lane, n] = 0.0
        cut = program.kernels[run.operator].num_rtasks
        for buffer, nbytes, part in parts[run.operator]:
            near = own[lane].use((buffer, cut, run.start, run.count, run.step), part * run.count)
            far = shared.use(buffer, nbytes)
            if program.graph.buffers[buffer].kind == "constant":
                mine = part * run.count
                late[lane, n] += max(0.0, caches.read_us(mine, near, far) - caches.alone_us(mine, nbytes, len(own)))
    return late


def _parts(graph: RGraph, operator: int, kernel: RKernel) -> list[tuple[int, int, float]]:
    """Each buffer of an operator, its size, and the even part of it that an rTask touches."""
    op = graph.operators[operator]
    sizes = [(b, graph.buffers[b].nbytes) for b in (*op.inputs, *op.outputs)]
    return [(b, nbytes, nbytes / kernel.num_rtasks) for b, nbytes in sizes]
