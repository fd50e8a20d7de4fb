"""CUDA tilings of functions that reduce whole rows before they write them, as softmax and the norms.

A row is all elements of the output that need the same sums; also a single one that needs sums of sums, as a variance.
The sums are made by all threads of the rTask together.
An rTask makes several rows one after another, or a long row is cut into several rTasks, each of which makes the sums
again: rTasks of one operator are independent (Rammer, 3.1).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir.schedule import SBlockRV

from ...device import DeviceSpec
from ..analysis.anchor import REDUCTION, is_reduction, outputs_of
from ..tiling import Function
from .cost import Cost, Work
from .elementwise import count_spatial, inline_spatial, producers_of, set_scopes, spatial_loops, terms_of
from .lowered import MAX_THREADS
from .rule import CudaRule, start

LEAST_COLUMNS = 8
"""Elements of the output that share one sum, from which on it pays to make the sum together."""

LONG_SUM = 32
"""Terms of a sum from which on it pays to make it together for a single element."""

IN_A_TRIP = 4
"""Elements of a thread that are under way together."""


@dataclass(frozen=True, slots=True)
class RowsTile:
    """`rows` rows to an rTask, or each row to `chunks` rTasks; one of the two is 1."""

    rows: int
    chunks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, elements of a row, number and length of the sums that a row needs, and the work of the whole function."""

    rows: int
    columns: int
    sums: int
    terms: int
    work: Work


def find_rows(function: Function) -> Rows | None:
    """Describe a function in which many elements of a single output need the same sums; None for others."""
    sch = start(function.func)
    inline_spatial(sch)
    output, *others = outputs_of(sch)
    producers = producers_of(sch, output)
    if others or not producers or is_reduction(sch, output):
        return None
    elements = count_spatial(sch, output)
    sums = [p for p in producers if is_reduction(sch, p)]
    terms = max((terms_of(sch, p) for p in sums), default=1)
    least = LEAST_COLUMNS if terms < LONG_SUM or len(sums) < 2 else 1
    if not sums or not all(count_spatial(sch, p) * least <= elements for p in producers):
        return None
    axes = sch.get(output).iter_vars
    rows = math.prod(int(axes[a].dom.extent) for a in _row_axes(sch, output, producers))
    if elements < least * rows:
        return None
    return Rows(rows, elements // rows, len(producers), terms, Work.of(function.func))


def _row_axes(sch: s_tir.Schedule, output: SBlockRV, producers: list[SBlockRV]) -> list[int]:
    """Axes of the output that choose the sums."""
    sums = [region.source for p in producers for region in sch.get(p).writes]
    block = sch.get(output)
    used: set[tirx.Var] = set()
    for region in block.reads:
        if any(region.source.same_as(buffer) for buffer in sums):
            for part in region.region:
                tvm_ffi.structural_walk(part.min, [(tirx.Var, used.add)], order="pre")
    return [a for a, axis in enumerate(block.iter_vars) if axis.var in used]


def rows_tiles(form: Rows, device: DeviceSpec) -> Iterator[RowsTile]:
    """From a quarter of a row to an eighth of all rows in an rTask."""
    for threads in (32, 64, 128, MAX_THREADS):
        if threads > max(device.warp, form.columns, form.terms):
            continue
        for chunks in (1, 2, 4, 8, 16):
            if chunks == 1 or (form.columns % chunks == 0 and form.columns // chunks >= threads):
                yield RowsTile(1, chunks, threads)
        for rows in (2, 4, 8, 16, 32):
            if form.rows % rows == 0:
                yield RowsTile(rows, 1, threads)


def rows_cost(form: Rows, tile: RowsTile) -> Cost:
    """What an rTask does: every chunk of a row repeats the row's sums."""
    num_rtasks = form.rows // tile.rows * tile.chunks
    sums = form.sums * (1 + form.terms / tile.threads / IN_A_TRIP)
    passes = sums + 1 + form.columns / tile.threads / tile.chunks / IN_A_TRIP
    return Cost(
        num_rtasks,
        tile.threads,
        form.work.flops / form.rows * tile.rows,
        form.work.nbytes / form.rows * tile.rows,
        steps=tile.rows * passes,
    )


def schedule_rows(func: tirx.PrimFunc, form: Rows, tile: RowsTile) -> s_tir.Schedule:
    """Schedule a function with each row, or some rows, in an rTask.

    Raises
    ------
    ScheduleError
        Its reductions cannot move into the loops over the output's rows.
    """
    sch = start(func)
    inline_spatial(sch)
    output = outputs_of(sch)[0]
    producers = producers_of(sch, output)
    chosen = _row_axes(sch, output, producers)
    loops = spatial_loops(sch, output)
    rows = [loops[a] for a in chosen] or [sch.add_unit_loop(output)]
    columns = [loop for a, loop in enumerate(loops) if a not in chosen] or [sch.add_unit_loop(output)]
    sch.reorder(*rows, *columns)
    block_loop, row = sch.split(sch.fuse(*rows), [None, tile.rows])
    chunk, serial, thread = sch.split(sch.fuse(*columns), [tile.chunks, None, tile.threads])
    sch.reorder(block_loop, chunk, row, thread, serial)
    sch.bind(sch.fuse(block_loop, chunk), "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    for producer in reversed(producers):
        sch.compute_at(producer, row, preserve_unit_loops=True)
        set_scopes(sch, producer, "shared")
        axes = sch.get(producer).iter_vars
        inner = sch.get_loops(producer)[-len(axes) :]
        reduced = [loop for loop, axis in zip(inner, axes, strict=True) if axis.iter_type == REDUCTION]
        kept = [loop for loop, axis in zip(inner, axes, strict=True) if axis.iter_type != REDUCTION]
        sch.reorder(*kept, *reduced)
        _, lane = sch.split(sch.fuse(*reduced), [None, tile.threads])
        sch.bind(lane, "threadIdx.x")
    return sch


ROWS_RULE = CudaRule("rows", find_rows, rows_tiles, RowsTile, rows_cost, schedule_rows)
