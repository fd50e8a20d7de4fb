"""CPU tilings of transpositions that make another axis the innermost one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tvm import tirx
from tvm.ir import TensorLoad

from ....kernel import ScheduledKernel
from ...analysis.affine import are
from ...analysis.blocks import SPATIAL, blocks_of, new_schedule
from ...analysis.work import Work, shape_of
from ...tiling import Function, Tiling, choices_of
from ..cost import RTASK_US, traffic_us
from ..in_registers import vector_of
from ..space import MAX_RTASKS_PER_UNIT, PartsTile, find_tile, scheduled_kernel
from .code import Transposition, cycles, transposition_code

_DTYPES = {"float32", "int32", "uint8", "int8"}
LEAST = 4
"""Elements of the two innermost axes: a tile of fewer gains nothing."""


@dataclass(frozen=True, slots=True)
class TranspositionRule:
    """Tiles that are turned in registers; the rTasks are parts of an outer axis."""

    name: str = "transposition"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All numbers of rTasks."""
        return [_tiling(function, tile) for tile in _tiles(function)]

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Generate the loops of one of them."""
        problem, tile = _problem(function.func), find_tile(_tiles(function), choices)
        if problem is None or tile is None:
            return None
        code = transposition_code(function.func, problem, tile.simd, tile.parts)
        return scheduled_kernel(function, _tiling(function, tile), code)


@lru_cache(maxsize=64)
def _problem(func: tirx.PrimFunc) -> Transposition | None:
    """The transposition that a function is; None where it is something else, or leaves the innermost axis in place."""
    sch = new_schedule(func)
    blocks = blocks_of(sch)
    dtypes = {str(p.dtype) for p in func.params}
    if len(blocks) != 1 or len(func.params) != 2 or len(dtypes) != 1 or not dtypes <= _DTYPES:
        return None
    block = sch.get(blocks[0])
    axes, store = [axis.var for axis in block.iter_vars], block.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, TensorLoad) or len(axes) < 2:
        return None
    if any(axis.iter_type != SPATIAL for axis in block.iter_vars) or not are(store.indices, axes):
        return None
    data, extents = store.value.source, tuple(int(axis.dom.extent) for axis in block.iter_vars)
    order = [next((a for a, axis in enumerate(axes) if index.same_as(axis)), -1) for index in store.value.indices]
    if sorted(order) != list(range(len(axes))) or order[-1] == len(axes) - 1:
        return None
    whole = shape_of(store.buffer) == extents and shape_of(data) == tuple(extents[a] for a in order)
    in_place = store.buffer.same_as(func.params[1]) and data.same_as(func.params[0])
    if not whole or not in_place or min(extents[order[-1]], extents[-1]) < LEAST:
        return None
    return Transposition(data, store.buffer, extents, tuple(order))


def _tiles(function: Function) -> Iterator[PartsTile]:
    problem = _problem(function.func)
    if problem is None:
        return
    simd = vector_of(str(problem.data.dtype), function.device.vector_bytes)
    for parts in range(1, MAX_RTASKS_PER_UNIT * function.device.units + 1):
        axis = problem.split_axis(simd, parts)
        if axis is not None:
            tiles = problem.tiles(simd)[axis]
            if -(-tiles // -(-tiles // parts)) == parts:  # no empty rTasks
                yield PartsTile(parts, simd)


def _tiling(function: Function, tile: PartsTile) -> Tiling:
    problem = _problem(function.func)
    assert problem is not None
    device, nbytes = function.device, Work.of(function.func).nbytes
    turn_us = cycles(problem, tile.simd, tile.parts) / (device.clock_ghz * 1e3)
    rtask_us = RTASK_US + max(turn_us, traffic_us(nbytes, nbytes / tile.parts, tile.parts, device))
    return Tiling("transposition", choices_of(tile), tile.parts, rtask_us)
