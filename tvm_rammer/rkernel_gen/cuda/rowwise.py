"""CUDA tilings of functions that reduce each row before they write it, such as softmax and the norms.

A row is all elements of the output that depend on the same reductions; it may be a single element that depends on
nested ones, such as a variance. All threads of an rTask compute a reduction together. An rTask computes several rows
one after another. Or a long row is split into several rTasks, each of which repeats the reductions: rTasks of one
operator are independent (Rammer, section 3.1).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir.schedule import SBlockRV

from ...device import DeviceSpec
from ..analysis.blocks import REDUCTION, is_reduction, new_schedule, outputs_of, producers_of
from ..analysis.work import Work
from ..tiling import Function
from .cost import Cost
from .lowered import MAX_THREADS
from .rule import CudaRule
from .spatial import count_spatial, count_terms, inline_spatial, set_scopes, spatial_loops

MIN_COLUMNS = 8
"""Output elements that depend on one reduction, at least, so that computing it together pays."""

MIN_TERMS = 32
"""Terms of a reduction, at least, so that computing it together pays for a single output element."""

LOADS_IN_FLIGHT = 8
"""Elements of a thread whose loads overlap."""

STEP_SHARE = 0.4
"""Of a step as the model has it: a row is in L1 from the first one on."""


@dataclass(frozen=True, slots=True)
class RowwiseTile:
    """An rTask computes `rows` rows, or a row is split into `chunks` rTasks; one of the two is 1."""

    rows: int
    chunks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Rowwise:
    """A function that reduces rows.

    Parameters
    ----------
    rows, columns : int
        Rows of the output, and elements of a row.
    reductions : int
        Blocks that a row depends on.
    terms : int
        Terms of the longest reduction.
    work : Work
        Work of the whole function.
    """

    rows: int
    columns: int
    reductions: int
    terms: int
    work: Work


def find_rowwise(function: Function) -> Rowwise | None:
    """Describe a function with one output, many elements of which depend on the same reductions; None for others."""
    sch = new_schedule(function.func)
    inline_spatial(sch)
    output, *others = outputs_of(sch)
    producers = producers_of(sch, output)
    if others or not producers or is_reduction(sch, output):
        return None
    elements = count_spatial(sch, output)
    reductions = [p for p in producers if is_reduction(sch, p)]
    terms = max((count_terms(sch, p) for p in reductions), default=1)
    min_columns = MIN_COLUMNS if terms < MIN_TERMS or len(reductions) < 2 else 1
    if not reductions or not all(count_spatial(sch, p) * min_columns <= elements for p in producers):
        return None
    axes = sch.get(output).iter_vars
    rows = math.prod(int(axes[a].dom.extent) for a in _row_axes(sch, output, producers))
    if elements < min_columns * rows:
        return None
    return Rowwise(rows, elements // rows, len(producers), terms, Work.of(function.func))


def _row_axes(sch: s_tir.Schedule, output: SBlockRV, producers: list[SBlockRV]) -> list[int]:
    """Axes of the output that index the results of its producers."""
    results = [region.source for p in producers for region in sch.get(p).writes]
    block = sch.get(output)
    used: set[tirx.Var] = set()
    for region in block.reads:
        if any(region.source.same_as(buffer) for buffer in results):
            for part in region.region:
                tvm_ffi.structural_walk(part.min, [(tirx.Var, used.add)], order="pre")
    return [a for a, axis in enumerate(block.iter_vars) if axis.var in used]


def rowwise_tiles(problem: Rowwise, device: DeviceSpec) -> Iterator[RowwiseTile]:
    """From a sixteenth of a row to 32 rows in an rTask."""
    for threads in (32, 64, 128, MAX_THREADS):
        if threads > max(device.warp, problem.columns, problem.terms):
            continue
        for chunks in (1, 2, 4, 8, 16):
            if chunks == 1 or (problem.columns % chunks == 0 and problem.columns // chunks >= threads):
                yield RowwiseTile(1, chunks, threads)
        for rows in (2, 4, 8, 16, 32):
            if problem.rows % rows == 0:
                yield RowwiseTile(rows, 1, threads)


def rowwise_cost(problem: Rowwise, tile: RowwiseTile) -> Cost:
    """What an rTask does: every chunk of a row repeats the row's reductions."""
    num_rtasks = problem.rows // tile.rows * tile.chunks
    reductions = problem.reductions * (1 + problem.terms / tile.threads / LOADS_IN_FLIGHT)
    steps = reductions + 1 + problem.columns / tile.threads / tile.chunks / LOADS_IN_FLIGHT
    return Cost(
        num_rtasks,
        tile.threads,
        problem.work.flops / problem.rows * tile.rows,
        problem.work.nbytes / problem.rows * tile.rows,
        steps=STEP_SHARE * tile.rows * steps,
    )


def schedule_rowwise(func: tirx.PrimFunc, problem: Rowwise, tile: RowwiseTile) -> s_tir.Schedule:
    """Schedule a function with some rows, or a part of one, in an rTask.

    Raises
    ------
    ScheduleError
        Its reductions cannot move into the loops over the output's rows.
    """
    sch = new_schedule(func)
    inline_spatial(sch)
    output = outputs_of(sch)[0]
    producers = producers_of(sch, output)
    row_axes = _row_axes(sch, output, producers)
    loops = spatial_loops(sch, output)
    rows = [loops[a] for a in row_axes] or [sch.add_unit_loop(output)]
    columns = [loop for a, loop in enumerate(loops) if a not in row_axes] or [sch.add_unit_loop(output)]
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
        _, thread = sch.split(sch.fuse(*reduced), [None, tile.threads])
        sch.bind(thread, "threadIdx.x")
    return sch


ROWWISE_RULE = CudaRule("rowwise", find_rowwise, rowwise_tiles, RowwiseTile, rowwise_cost, schedule_rowwise)
