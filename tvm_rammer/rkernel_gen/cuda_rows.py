"""CUDA tilings of functions that reduce whole rows before they write them, as softmax: a row to an rTask.

The row's sums are made by all threads of the rTask together. A long row may also be cut into several rTasks,
each of which makes the sums again: rTasks of one operator are independent (Rammer, 3.1).
"""

import tvm
from tvm import s_tir, tirx

from .anchor import REDUCTION, is_reduction, outputs_of
from .cuda_elementwise import count_spatial, inline_spatial, producers_of, spatial_loops

LEAST_COLUMNS = 8
"""Elements of the output that share one sum, from which on it pays to make the sum together."""


def reduces_rows(func: tirx.PrimFunc) -> bool:
    """Whether many elements of a single output need the same sums."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    inline_spatial(sch)
    output, *others = outputs_of(sch)
    producers = producers_of(sch, output)
    if others or not producers or is_reduction(sch, output):
        return False
    return all(count_spatial(sch, p) * LEAST_COLUMNS <= count_spatial(sch, output) for p in producers)


def schedule_rows(func: tirx.PrimFunc, chunks: int, threads: int) -> tirx.PrimFunc:
    """Schedule a function that `reduces_rows` with each row of its output in `chunks` rTasks of `threads` threads.

    Raises
    ------
    ScheduleError
        Its reductions cannot move into the loops over the output's rows.
    """
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    inline_spatial(sch)
    outputs = outputs_of(sch)
    producers = producers_of(sch, outputs[0])
    *rows, columns = spatial_loops(sch, outputs[0])
    chunk, serial, thread = sch.split(columns, [chunks, None, threads])
    block_loop = sch.fuse(*rows, chunk)
    sch.bind(block_loop, "blockIdx.x")
    sch.reorder(thread, serial)
    sch.bind(thread, "threadIdx.x")
    for producer in reversed(producers):
        sch.compute_at(producer, block_loop, preserve_unit_loops=True)
        sch.set_scope(producer, 0, "shared")
        axes = sch.get(producer).iter_vars
        loops = sch.get_loops(producer)[-len(axes) :]
        reduced = [loop for loop, axis in zip(loops, axes, strict=True) if axis.iter_type == REDUCTION]
        kept = [loop for loop, axis in zip(loops, axes, strict=True) if axis.iter_type != REDUCTION]
        sch.reorder(*kept, *reduced)
        _, lane = sch.split(sch.fuse(*reduced), [None, threads])
        sch.bind(lane, "threadIdx.x")
    return sch.mod["main"]
