"""CPU tilings of everything else: the output's outer loops are cut into rTasks.

What comes before the output (padding, the sums of a softmax) moves inside the rTask that needs it. Where
several rTasks need the same value, each computes it: rTasks of one operator are independent (Rammer, 3.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tvm.s_tir.schedule import ScheduleError

from ....kernel import ScheduledKernel
from ...tiling import Function, Tiling
from .. import cost
from ..space import MOST_RTASKS_PER_UNIT, choices_of, finish, pick
from .code import SHORTEST_VECTOR, generic_schedule
from .cost import generic_us
from .read import cuts_of, output_shapes

UNKNOWN_CYCLES = 2.0
"""Cycles for an operation of a function that no schedule can work on: nothing is in vectors."""

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
    longest = max(1, function.device.vector_bytes // 4)
    widths = [lanes for lanes in (longest, longest // 2) if lanes >= SHORTEST_VECTOR] or [longest]
    for parts in range(1, most + 1):
        if parts == 1 or (shapes and all(cuts_of(shape, parts) is not None for shape in shapes)):
            yield from (Tile(parts, lanes) for lanes in widths)


def _tiling(function: Function, tile: Tile) -> Tiling:
    shapes = _output_shapes(function.func)
    if shapes:
        time = generic_us(function.func, tile.parts, tile.lanes, shapes[0], function.device)
    else:
        work = cost.Work.of(function.func)
        time = cost.RTASK_US + work.flops * UNKNOWN_CYCLES / (function.device.clock_ghz * 1e3)
    return Tiling("generic", choices_of(tile), tile.parts, time)
