"""CPU tilings of functions that make another axis the innermost one: transpositions, and what is fused with one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....kernel import ScheduledKernel
from ...analysis.work import Work, nbytes_of
from ...tiling import Function, Tiling, choices_of
from ..cost import RTASK_US, stream_us
from ..in_registers import vector_of
from ..space import MAX_RTASKS_PER_UNIT, PartsTile, find_tile, scheduled_kernel
from .code import cycles, transposition_code
from .problem import transposition_of


@dataclass(frozen=True, slots=True)
class TranspositionRule:
    """Tiles that are turned in registers; the rTasks are parts of an outer axis."""

    name: str = "transposition"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All numbers of rTasks."""
        return [_tiling(function, tile) for tile in _tiles(function)]

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Generate the loops of one of them."""
        problem, tile = transposition_of(function.func), find_tile(_tiles(function), choices)
        if problem is None or tile is None:
            return None
        code = transposition_code(function.func, problem, tile.simd, tile.parts)
        return scheduled_kernel(function, _tiling(function, tile), code)


def _tiles(function: Function) -> Iterator[PartsTile]:
    problem = transposition_of(function.func)
    if problem is None:
        return
    simd = vector_of(problem.dtype, function.device.vector_bytes)
    for parts in range(1, MAX_RTASKS_PER_UNIT * function.device.units + 1):
        axis = problem.split_axis(simd, parts)
        if axis is not None:
            tiles = problem.tiles(simd)[axis]
            if -(-tiles // -(-tiles // parts)) == parts:  # no empty rTasks
                yield PartsTile(parts, simd)


def _tiling(function: Function, tile: PartsTile) -> Tiling:
    problem = transposition_of(function.func)
    assert problem is not None
    device, written = function.device, nbytes_of(problem.out)
    turn_us = cycles(problem, tile.simd, tile.parts) / (device.clock_ghz * 1e3)
    traffic = stream_us(Work.of(function.func).nbytes - written, written, tile.parts, device)
    rtask_us = RTASK_US + max(turn_us, traffic)
    return Tiling("transposition", choices_of(tile), tile.parts, rtask_us)
