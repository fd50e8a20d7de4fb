"""CUDA tilings of long sums with few results (matrix x vector, global average): threads share a sum.

An rTask makes `results` outputs with `lanes` threads each. Partial sums meet in shared memory. Consecutive threads
read what lies side by side: they differ in the sum's index or in the result's, as the larger operand is laid out.
"""

import math
from dataclasses import dataclass

import tvm
from tvm import s_tir, tirx

from .anchor import REDUCTION, blocks_of, is_reduction, outputs_of
from .cuda_contraction import fastest_axes
from .cuda_elementwise import inline_spatial


@dataclass(frozen=True, slots=True)
class Sums:
    """Number of results, length of each sum, and whether neighbours in memory belong to different results."""

    results: int
    length: int
    result_fast: bool


def find_sums(func: tirx.PrimFunc) -> Sums | None:
    """Describe a function with exactly one reduction and one output; None for others."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or len(outputs_of(sch)) != 1:
        return None
    block = sch.get(found[0])
    results = math.prod(int(v.dom.extent) for v in block.iter_vars if v.iter_type != REDUCTION)
    length = math.prod(int(v.dom.extent) for v in block.iter_vars if v.iter_type == REDUCTION)
    largest = max(block.reads, key=lambda r: math.prod(int(n) for n in r.source.shape))
    reduced = {v.var for v in block.iter_vars if v.iter_type == REDUCTION}
    return Sums(results, length, not fastest_axes(block, largest) & reduced)


def choose_lanes(sums: Sums, warp: int) -> tuple[tuple[int, int], ...]:
    """Pairs (results, lanes) of an rTask: 128 to 256 threads, several numbers of rTasks."""
    pairs = []
    for results in (32, 16, 8, 4, 2, 1) if not sums.result_fast else (64, 32, 16, 8):
        lanes = max((d for d in range(1, 256 // results + 1) if sums.length % d == 0), default=1)
        if results <= 2 * sums.results and lanes > 1 and results * lanes % warp == 0:
            pairs.append((results, lanes))
    return tuple(pairs)


def schedule_sums(func: tirx.PrimFunc, sums: Sums, results: int, lanes: int) -> tirx.PrimFunc:
    """Schedule a function with `results` outputs and `lanes` threads for each in an rTask.

    Raises
    ------
    ScheduleError
        Something around the reduction cannot be inlined.
    """
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    block = next(b for b in blocks_of(sch) if is_reduction(sch, b))
    inline_spatial(sch)
    loops = list(zip(sch.get_loops(block), sch.get(block).iter_vars, strict=True))
    kept = [loop for loop, axis in loops if axis.iter_type != REDUCTION] or [sch.add_unit_loop(block)]
    reduced = [loop for loop, axis in loops if axis.iter_type == REDUCTION]
    sch.reorder(*kept, *reduced)
    outer, mine = sch.split(sch.fuse(*kept), [None, results])
    term, lane = sch.split(sch.fuse(*reduced), [None, lanes])
    partial = sch.rfactor(lane, 0)
    sch.set_scope(partial, 0, "shared")
    store = sch.cache_write(partial, 0, "local")  # or every term would go through shared memory

    outer, mine, term, lane = sch.get_loops(partial)
    threads = (lane, mine) if sums.result_fast else (mine, lane)
    sch.reorder(outer, *threads, term)
    sch.bind(outer, "blockIdx.x")
    thread = sch.fuse(*threads)
    sch.bind(thread, "threadIdx.x")
    sch.reverse_compute_at(store, thread)
    after = (block, *sch.get_consumers(block))
    for later in after:
        sch.reverse_compute_at(later, outer, preserve_unit_loops=True)
    # Only now: TVM would take what a thread's guard leaves out for written, and go on to the consumer with it.
    for later in after:
        inner = zip(sch.get_loops(later)[1:], sch.get(later).iter_vars, strict=True)
        spatial = sch.fuse(*(loop for loop, axis in inner if axis.iter_type != REDUCTION))
        _, thread = sch.split(spatial, [None, results * lanes])
        sch.bind(thread, "threadIdx.x")
    if len(after) > 1:
        sch.set_scope(block, 0, "shared")
    return sch.mod["main"]
