"""CPU tilings of any function: the outer loops of the outputs are split into rTasks.

Producers of an output (padding, the sums of a softmax) move into the rTasks that need them. Where several rTasks need
the same value, each computes it: rTasks of one operator are independent (Rammer, section 3.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tvm.s_tir.schedule import ScheduleError

from ....ir import ITEM_BYTES
from ....kernel import ScheduledKernel
from ...analysis.work import Work
from ...tiling import Function, Tiling, choices_of
from .. import cost
from ..space import MAX_RTASKS_PER_UNIT, PartsTile, find_tile, scheduled_kernel
from .code import MIN_VECTOR, generic_schedule
from .cost import generic_us
from .read import output_shapes, splits_of

UNKNOWN_CYCLES = 2.0
"""Cycles for an operation, or an element, of a function that is not schedulable: nothing is vectorised."""

_output_shapes = lru_cache(maxsize=64)(output_shapes)


@dataclass(frozen=True, slots=True)
class GenericRule:
    """Any function: the rTasks are blocks of its outputs' outer axes."""

    name: str = "generic"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All numbers of rTasks that all outputs can be split into; at least a single rTask."""
        return [_tiling(function, tile) for tile in _tiles(function)]

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Schedule one of them; a function that is not schedulable, such as a cumulative sum, stays as it is."""
        tile = find_tile(_tiles(function), choices)
        if tile is None:
            return None
        try:
            sch = generic_schedule(function.func, tile.parts, tile.simd)
        except ScheduleError:
            return scheduled_kernel(function, _tiling(function, tile), function.func) if tile.parts == 1 else None
        return scheduled_kernel(function, _tiling(function, tile), sch.mod["main"], trace=sch.trace.simplified(False))


def _tiles(function: Function) -> Iterator[PartsTile]:
    shapes = _output_shapes(function.func)
    max_parts = MAX_RTASKS_PER_UNIT * function.device.units
    longest = max(1, function.device.vector_bytes // 4)
    widths = [simd for simd in (longest, longest // 2) if simd >= MIN_VECTOR] or [longest]
    for parts in range(1, max_parts + 1):
        if parts == 1 or (shapes and all(splits_of(shape, parts) is not None for shape in shapes)):
            yield from (PartsTile(parts, simd) for simd in widths)


def _tiling(function: Function, tile: PartsTile) -> Tiling:
    shapes = _output_shapes(function.func)
    if shapes:
        rtask_us = generic_us(function.func, tile.parts, tile.simd, shapes[0], function.device)
    else:
        work = Work.of(function.func)
        steps = max(work.flops, work.nbytes / ITEM_BYTES["float32"])
        rtask_us = cost.RTASK_US + steps * UNKNOWN_CYCLES / (function.device.clock_ghz * 1e3)
    return Tiling("generic", choices_of(tile), tile.parts, rtask_us)
