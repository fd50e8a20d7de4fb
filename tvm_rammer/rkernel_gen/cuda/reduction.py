"""CUDA tilings of long reductions with few results (matrix x vector, global average): several threads share a sum.

An rTask computes `results` outputs with `threads_per_sum` threads each. Partial sums are combined by shuffles or in
shared memory. Consecutive threads read contiguous data: the layout of the larger operand decides whether they differ
in the reduction index or in the result.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ...device import DeviceSpec
from ..analysis.blocks import (
    REDUCTION,
    blocks_of,
    compute_where_made,
    is_reduction,
    loops_by_axis,
    new_schedule,
    one_result,
)
from ..analysis.work import Work, shape_of
from ..tiling import Function
from .cost import Cost
from .lowered import MAX_THREADS
from .product.problem import fastest_axes, find_gemm
from .rule import CudaRule
from .spatial import inline_spatial

MIN_TERMS, MAX_RESULTS = 32, 1 << 16
"""The rule takes reductions of at least so many terms, with at most so many results."""

MAX_GEMM_SIDE = 16
"""A product with more rows and more columns reads each operand often: the gemm rules tile both."""

LOADS_IN_FLIGHT = 16
"""Terms of a thread whose loads overlap."""


@dataclass(frozen=True, slots=True)
class ReductionTile:
    """An rTask computes `results` outputs with `threads_per_sum` threads each."""

    results: int
    threads_per_sum: int

    @property
    def threads(self) -> int:
        """Threads of an rTask."""
        return self.results * self.threads_per_sum


@dataclass(frozen=True, slots=True)
class Reduction:
    """A long reduction.

    Parameters
    ----------
    results, terms : int
        Number of results, and terms of each.
    row : int
        Results in a row of the output.
    result_fast : bool
        Whether neighbours in memory belong to different results.
    work : Work
        Work of the whole function.
    """

    results: int
    terms: int
    row: int
    result_fast: bool
    work: Work


def find_reduction(function: Function) -> Reduction | None:
    """Describe a function with one output and exactly one reduction, a long one; None for others."""
    sch = new_schedule(function.func)
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or not one_result(sch):
        return None
    block = sch.get(found[0])
    if len(block.writes) != 1:
        return None
    results = math.prod(int(v.dom.extent) for v in block.iter_vars if v.iter_type != REDUCTION)
    terms = math.prod(int(v.dom.extent) for v in block.iter_vars if v.iter_type == REDUCTION)
    gemm = find_gemm(function)
    if terms < MIN_TERMS or results > MAX_RESULTS or (gemm and min(gemm.i, gemm.j) > MAX_GEMM_SIDE):
        return None
    largest = max(block.reads, key=lambda r: math.prod(shape_of(r.source)))
    reduced = {v.var for v in block.iter_vars if v.iter_type == REDUCTION}
    kept = [int(v.dom.extent) for v in block.iter_vars if v.iter_type != REDUCTION and int(v.dom.extent) > 1]
    return Reduction(
        results,
        terms,
        row=kept[-1] if kept else 1,
        result_fast=not fastest_axes(block, largest) & reduced,
        work=Work.of(function.func),
    )


def reduction_tiles(problem: Reduction, device: DeviceSpec) -> Iterator[ReductionTile]:
    """Tiles of full warps. Where neighbours in memory are results, the threads of a sum divide its terms."""
    for results in (1, 2, 4, 8, 16, 32, 64, 128):
        max_threads = MAX_THREADS // results
        # Otherwise the tile is no box of the output.
        is_box = problem.row in (problem.results, results) or problem.row % results == 0
        # TVM drops the guard of a single result: the threads of a second one would store to the same place.
        most = 2 * problem.results if problem.results > 1 else 1
        if results > most or not is_box or (problem.result_fast and results < 8):
            continue
        if problem.result_fast:
            choices = [n for n in range(2, max_threads + 1) if problem.terms % n == 0]
        else:
            choices = [n for n in (4, 8, 16, 32, 64, 128, 256) if n <= min(max_threads, problem.terms)]
        tiles = (ReductionTile(results, n) for n in choices)
        yield from (tile for tile in tiles if tile.threads >= 64 and tile.threads % device.warp == 0)


def reduction_cost(problem: Reduction, tile: ReductionTile) -> Cost:
    """What an rTask does: it reads its part of the largest operand, and all of the others."""
    num_rtasks = -(-problem.results // tile.results)
    others = min(problem.work.nbytes - problem.work.largest, problem.work.largest / num_rtasks)
    combine = 1 if tile.threads_per_sum <= 32 else 2
    return Cost(
        num_rtasks,
        tile.threads,
        problem.work.flops / num_rtasks,
        problem.work.largest / num_rtasks + others,
        steps=1 + problem.terms / tile.threads_per_sum / LOADS_IN_FLIGHT + combine,
        outputs=1,
    )


def schedule_reduction(func: tirx.PrimFunc, problem: Reduction, tile: ReductionTile) -> s_tir.Schedule:
    """Schedule a function with `results` outputs in an rTask, and `threads_per_sum` threads for each.

    Raises
    ------
    ScheduleError
        Something around the reduction cannot be inlined.
    ValueError
        There is a single result, and a tile of several.
    """
    if problem.results == 1 < tile.results:
        raise ValueError(f"{tile} has threads for more than one result")
    sch = new_schedule(func)
    block = next(b for b in blocks_of(sch) if is_reduction(sch, b))
    inline_spatial(sch)
    if problem.results % tile.results and not problem.result_fast and not sch.get_consumers(block):
        # From the store that follows a shuffle TVM drops the last rTask's guard. A copy to the output has its own.
        sch.cache_write(block, 0, "local")
    loops = list(zip(loops_by_axis(sch, block), sch.get(block).iter_vars, strict=True))
    kept = [loop for loop, axis in loops if axis.iter_type != REDUCTION] or [sch.add_unit_loop(block)]
    reduced = [loop for loop, axis in loops if axis.iter_type == REDUCTION]
    sch.reorder(*kept, *reduced)
    outer, result = sch.split(sch.fuse(*kept), [None, tile.results])
    _, partial = sch.split(sch.fuse(*reduced), [None, tile.threads_per_sum])
    if problem.result_fast:
        _combine_in_shared_memory(sch, block, tile, partial)
    else:
        _combine_by_shuffles(sch, block, outer, result, partial)
    return sch


def _combine_by_shuffles(sch: s_tir.Schedule, block: SBlockRV, outer: LoopRV, result: LoopRV, partial: LoopRV) -> None:
    """The threads of a sum are consecutive: TVM lowers a reduction over threadIdx.x to warp shuffles."""
    sch.bind(outer, "blockIdx.x")
    sch.bind(result, "threadIdx.y")
    sch.bind(partial, "threadIdx.x")
    consumers = sch.get_consumers(block)
    for consumer in consumers:
        compute_where_made(sch, consumer, result, keep_unit_loops=True)
    if consumers:
        sch.set_scope(block, 0, "local")


def _combine_in_shared_memory(sch: s_tir.Schedule, block: SBlockRV, tile: ReductionTile, partial: LoopRV) -> None:
    """The threads of a sum are not consecutive: each writes its partial sum, and one thread a result adds them up."""
    partials = sch.rfactor(partial, 0)
    sch.set_scope(partials, 0, "shared")
    store = sch.cache_write(partials, 0, "local")  # otherwise each term would go through shared memory

    outer, result, term, partial = sch.get_loops(partials)
    sch.reorder(outer, partial, result, term)
    sch.bind(outer, "blockIdx.x")
    thread = sch.fuse(partial, result)
    sch.bind(thread, "threadIdx.x")
    compute_where_made(sch, store, thread)
    final = (block, *sch.get_consumers(block))
    for consumer in final:
        compute_where_made(sch, consumer, outer, keep_unit_loops=True)
    # Split only after all blocks are in place: TVM ignores the split's guard when it infers which region is written.
    for consumer in final:
        inner = zip(sch.get_loops(consumer)[1:], sch.get(consumer).iter_vars, strict=True)
        spatial = sch.fuse(*(loop for loop, axis in inner if axis.iter_type != REDUCTION))
        _, thread = sch.split(spatial, [None, tile.threads])
        sch.bind(thread, "threadIdx.x")
    if len(final) > 1:
        sch.set_scope(block, 0, "shared")


REDUCTION_RULE = CudaRule(
    "reduction", find_reduction, reduction_tiles, ReductionTile, reduction_cost, schedule_reduction
)
