"""CPU tilings of everything else: the output's outer loops are cut into rTasks.

What comes before the output (padding, the sums of a softmax) moves inside the rTask that needs it. Where
several rTasks need the same value, each computes it: rTasks of one operator are independent (Rammer, 3.1).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tvm import tirx
from tvm.s_tir.schedule import ScheduleError

from ..kernel import ScheduledKernel
from . import cpu_cost
from .cpu_generic_code import generic_schedule
from .cpu_generic_read import cuts_of, output_shapes, shares_of
from .cpu_space import MOST_RTASKS_PER_UNIT, choices_of, finish, pick
from .tiling import Function, Tiling

_output_shapes = lru_cache(maxsize=64)(output_shapes)


@dataclass(frozen=True, slots=True)
class Tile:
    """A tiling: the number of rTasks, and the longest vector (in elements) that loops are cut into."""

    parts: int
    lanes: int


@dataclass(frozen=True, slots=True)
class GenericRule:
    """Any function: the rTasks are blocks of its outputs' outer axes."""

    name: str = "generic"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All numbers of rTasks that all outputs can be cut into; at least one rTask, which any function can be."""
        return [_tiling(function, tile) for tile in _tiles(function)]

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Schedule one of them; a function that no schedule can work on, as a cumulative sum, stays as it is."""
        tile = pick(_tiles(function), choices)
        if tile is None:
            return None
        try:
            sch = generic_schedule(function.func, tile.parts, tile.lanes)
        except ScheduleError:
            return finish(function, _tiling(function, tile), function.func) if tile.parts == 1 else None
        return finish(function, _tiling(function, tile), sch.mod["main"], trace=sch.trace.simplified(False))


def _tiles(function: Function) -> Iterator[Tile]:
    shapes = _output_shapes(function.func)
    most = MOST_RTASKS_PER_UNIT * function.device.units
    lanes = max(1, function.device.vector_bytes // 4)
    for parts in range(1, most + 1):
        if parts == 1 or (shapes and all(cuts_of(shape, parts) is not None for shape in shapes)):
            yield Tile(parts, lanes)


def _tiling(function: Function, tile: Tile) -> Tiling:
    repeated = _repeated(function.func, tile.parts)
    time = cpu_cost.plain_us(cpu_cost.Work.of(function.func), tile.parts, function.device, recomputed=repeated)
    return Tiling("generic", choices_of(tile), tile.parts, time)


def _repeated(func: tirx.PrimFunc, parts: int) -> float:
    """How many times all operations are done, where each rTask computes for itself what it needs."""
    shapes = _output_shapes(func)
    cuts = cuts_of(shapes[0], parts) if shapes else None
    if cuts is None or parts == 1:
        return 1.0
    done = needed = 0.0
    for share in shares_of(func):
        needed += share.operations
        done += share.operations * parts / math.prod(c for axis, c in enumerate(cuts) if axis in share.axes)
    return done / max(1.0, needed)
