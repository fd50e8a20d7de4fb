"""CUDA tilings of long sums with few results (matrix x vector, global average): threads share a sum.

An rTask makes `results` outputs with `lanes` threads each. Partial sums meet in shared memory. Consecutive threads
read what lies side by side: they differ in the sum's index or in the result's, as the larger operand is laid out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ...device import DeviceSpec
from ..analysis.anchor import REDUCTION, blocks_of, is_reduction, one_result
from ..tiling import Function
from .cost import Cost, Work
from .elementwise import inline_spatial
from .lowered import MAX_THREADS
from .product.form import fastest_axes, find_gemm
from .rule import CudaRule, start

LONG_SUM, FEW_RESULTS = 32, 1 << 16
"""Sums at least so long, of at most so many results, are shared by threads."""

FEW_COLUMNS = 16
"""A product with more rows and columns than these reads each operand often: it needs a tile of both."""

IN_A_TRIP = 8
"""Terms of a thread that are under way together."""


@dataclass(frozen=True, slots=True)
class SumsTile:
    """An rTask makes `results` outputs with `lanes` threads each."""

    results: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Sums:
    """Long sums.

    Parameters
    ----------
    results, length : int
        Number of sums, and of their terms.
    row : int
        Results in a row of the output.
    result_fast : bool
        Neighbours in memory belong to different results.
    work : Work
        Of the whole function.
    """

    results: int
    length: int
    row: int
    result_fast: bool
    work: Work


def find_sums(function: Function) -> Sums | None:
    """Describe a function with exactly one reduction and one output, of long sums; None for others."""
    sch = start(function.func)
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or not one_result(sch):
        return None
    block = sch.get(found[0])
    if len(block.writes) != 1:
        return None
    results = math.prod(int(v.dom.extent) for v in block.iter_vars if v.iter_type != REDUCTION)
    length = math.prod(int(v.dom.extent) for v in block.iter_vars if v.iter_type == REDUCTION)
    gemm = find_gemm(function)
    if length < LONG_SUM or results > FEW_RESULTS or (gemm and min(gemm.i, gemm.j) > FEW_COLUMNS):
        return None
    largest = max(block.reads, key=lambda r: math.prod(int(n) for n in r.source.shape))
    reduced = {v.var for v in block.iter_vars if v.iter_type == REDUCTION}
    kept = [int(v.dom.extent) for v in block.iter_vars if v.iter_type != REDUCTION and int(v.dom.extent) > 1]
    return Sums(
        results, length, kept[-1] if kept else 1, not fastest_axes(block, largest) & reduced, Work.of(function.func)
    )


def sums_tiles(sums: Sums, device: DeviceSpec) -> Iterator[SumsTile]:
    """Tiles of full warps; where neighbours are results, lanes that divide the sum."""
    for results in (1, 2, 4, 8, 16, 32, 64, 128):
        most = MAX_THREADS // results
        whole = sums.row in (sums.results, results) or sums.row % results == 0  # or the tile is no box of the output
        if results > 2 * sums.results or not whole or (sums.result_fast and results < 8):
            continue
        if sums.result_fast:
            choices = [n for n in range(2, most + 1) if sums.length % n == 0]
        else:
            choices = [n for n in (4, 8, 16, 32, 64, 128, 256) if n <= min(most, sums.length)]
        yield from (SumsTile(results, n) for n in choices if results * n >= 64 and results * n % device.warp == 0)


def sums_cost(sums: Sums, tile: SumsTile) -> Cost:
    """What an rTask of sums does: its part of the largest operand, and all of the others."""
    num_rtasks = -(-sums.results // tile.results)
    rest = min(sums.work.nbytes - sums.work.largest, sums.work.largest / num_rtasks)
    return Cost(
        num_rtasks,
        tile.results * tile.lanes,
        sums.work.flops / num_rtasks,
        sums.work.largest / num_rtasks + rest,
        steps=1 + sums.length / tile.lanes / IN_A_TRIP + (1 if tile.lanes <= 32 else 2),
        outputs=1,
    )


def schedule_sums(func: tirx.PrimFunc, sums: Sums, tile: SumsTile) -> s_tir.Schedule:
    """Schedule a function with `results` outputs and `lanes` threads for each in an rTask.

    Raises
    ------
    ScheduleError
        Something around the reduction cannot be inlined.
    """
    sch = start(func)
    block = next(b for b in blocks_of(sch) if is_reduction(sch, b))
    inline_spatial(sch)
    loops = list(zip(sch.get_loops(block), sch.get(block).iter_vars, strict=True))
    kept = [loop for loop, axis in loops if axis.iter_type != REDUCTION] or [sch.add_unit_loop(block)]
    reduced = [loop for loop, axis in loops if axis.iter_type == REDUCTION]
    sch.reorder(*kept, *reduced)
    outer, mine = sch.split(sch.fuse(*kept), [None, tile.results])
    _, lane = sch.split(sch.fuse(*reduced), [None, tile.lanes])
    if sums.result_fast:
        _meet_in_shared_memory(sch, block, tile, lane)
    else:
        _meet_in_shuffles(sch, block, outer, mine, lane)
    return sch


def _meet_in_shuffles(sch: s_tir.Schedule, block: SBlockRV, outer: LoopRV, mine: LoopRV, lane: LoopRV) -> None:
    """The lanes of a sum lie side by side: TVM makes shuffles of a reduction over threads."""
    sch.bind(outer, "blockIdx.x")
    sch.bind(mine, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    after = sch.get_consumers(block)
    for later in after:
        sch.reverse_compute_at(later, mine, preserve_unit_loops=True)
    if after:
        sch.set_scope(block, 0, "local")


def _meet_in_shared_memory(sch: s_tir.Schedule, block: SBlockRV, tile: SumsTile, lane: LoopRV) -> None:
    """The lanes of a sum are apart: each writes its part, and one thread a result adds them up."""
    partial = sch.rfactor(lane, 0)
    sch.set_scope(partial, 0, "shared")
    store = sch.cache_write(partial, 0, "local")  # or every term would go through shared memory

    outer, mine, term, lane = sch.get_loops(partial)
    sch.reorder(outer, lane, mine, term)
    sch.bind(outer, "blockIdx.x")
    thread = sch.fuse(lane, mine)
    sch.bind(thread, "threadIdx.x")
    sch.reverse_compute_at(store, thread)
    after = (block, *sch.get_consumers(block))
    for later in after:
        sch.reverse_compute_at(later, outer, preserve_unit_loops=True)
    # Only now: TVM would take what a thread's guard leaves out for written, and go on to the consumer with it.
    for later in after:
        inner = zip(sch.get_loops(later)[1:], sch.get(later).iter_vars, strict=True)
        spatial = sch.fuse(*(loop for loop, axis in inner if axis.iter_type != REDUCTION))
        _, thread = sch.split(spatial, [None, tile.results * tile.lanes])
        sch.bind(thread, "threadIdx.x")
    if len(after) > 1:
        sch.set_scope(block, 0, "shared")


SUMS_RULE = CudaRule("sums", find_sums, sums_tiles, SumsTile, sums_cost, schedule_sums)
