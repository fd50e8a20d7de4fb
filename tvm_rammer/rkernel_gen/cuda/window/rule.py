"""CUDA tilings of sliding windows: depthwise and grouped convolutions with few channels, pooling.

An rTask computes a box of channels, rows and columns. All its threads copy the part of the image that the box reads,
with padding, to shared memory. Each thread computes some filters, rows and columns in registers. A matrix product
would waste most of its tile on such convolutions, and would read each pixel once for each window that covers it.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.s_tir.dlight.gpu.matmul import auto_inline_consumer_chain, auto_inline_producers
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ....device import DeviceSpec
from ...analysis.blocks import REDUCTION, blocks_of, compute_where_made, is_reduction, new_schedule, one_result
from ...tiling import Function
from ..cost import SECTOR_BYTES, WARP, Cost
from ..edges import padded_by_edges
from ..groups import separate_groups
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import CudaRule
from .problem import WindowReduction, describe_window

MAX_CHANNELS, MAX_FILTERS = 32, 32
"""The gemm rules take convolutions with more channels or filters in a group."""

MAX_OUTPUTS_PER_THREAD = 32
"""Results that a thread keeps in registers, at most."""

TRANSACTION_COLUMNS = 8
"""Columns of a box, at least, where the output has as many: a memory transaction of 32 bytes."""

MIN_OCCUPIED = 0.75
"""Share of an rTask's threads that compute outputs, at least; the rest fill up the last warp."""

BANKS = 32
"""Banks of shared memory: accesses of a warp to different words of one bank are serialised."""

MAX_UNROLLED = 64
"""Terms of a window that are unrolled, at most: a 7 x 7 window is."""

TERM_CYCLES = 0.12
"""Of a term of a pool's thread, times the root of the conflicts: fitted to five max pools on an H200, within 40 %."""

LOADS_IN_FLIGHT = 16
"""Elements that a thread copies to shared memory whose loads overlap."""


@dataclass(frozen=True, slots=True)
class WindowReductionTile:
    """An rTask's box of channels, rows and columns, with all filters; and what one thread computes of it."""

    channels: int
    rows: int
    columns: int
    thread_filters: int
    thread_rows: int
    thread_columns: int

    @property
    def outputs(self) -> int:
        """Results of a thread."""
        return self.thread_filters * self.thread_rows * self.thread_columns


def find_window_reduction(function: Function) -> WindowReduction | None:
    """Describe a function with one output and one reduction, over windows with few channels; None for others."""
    sch = new_schedule(function.func)
    block = _reduction(sch)
    if block is None:
        return None
    window = describe_window(sch.get(block))
    if window is None or window.filters > MAX_FILTERS or window.depth > MAX_CHANNELS:
        return None
    return window


def window_tiles(window: WindowReduction, device: DeviceSpec) -> Iterator[WindowReductionTile]:
    """All boxes that divide the output, keep most threads of their warps busy, and fit into shared memory."""
    all_rows = [(n, m) for n in _divisors(window.rows, 56) for m in (1, 2, 4) if n % m == 0]
    all_columns = [(n, m) for n in _divisors(window.columns, 128) for m in (1, 2, 4, 7, 8) if n % m == 0]
    all_filters = _divisors(window.filters, 8)
    for filters, (rows, thread_rows), (columns, thread_columns) in itertools.product(
        all_filters, all_rows, all_columns
    ):
        outputs = filters * thread_rows * thread_columns
        if outputs > MAX_OUTPUTS_PER_THREAD or columns < min(window.columns, TRANSACTION_COLUMNS):
            continue
        for channels in _divisors(window.channels, 64):
            tile = WindowReductionTile(channels, rows, columns, filters, thread_rows, thread_columns)
            busy = _busy_threads(window, tile)
            is_occupied = MIN_OCCUPIED * _threads(window, tile) <= busy <= MAX_THREADS
            if is_occupied and _shared_bytes(window, tile) <= MAX_SHARED:
                yield tile


def window_cost(window: WindowReduction, tile: WindowReductionTile) -> Cost:
    """The work of an rTask."""
    boxes = (window.channels // tile.channels) * (window.rows // tile.rows) * (window.columns // tile.columns)
    threads = _threads(window, tile)
    image, weights = _image_elements(window, tile), _weight_elements(window, tile)
    outputs = tile.channels * window.filters * tile.rows * tile.columns
    # For each row of its windows a thread reads the pixels once; the weights of its filters are shared by a warp.
    conflicts = _conflicts(window, tile)
    pixels = conflicts * tile.thread_rows * window.span_columns(tile.thread_columns)
    filters = tile.thread_filters * window.taps_per_row / 8 if weights else 0
    return Cost(
        num_rtasks=window.others * boxes,
        threads=threads,
        flops=2.0 * window.terms * threads * tile.outputs,
        nbytes=window.itemsize * (image + weights) + min(SECTOR_BYTES, window.itemsize * tile.thread_columns) * outputs,
        shared_bytes=window.itemsize * threads * (pixels + filters) * window.terms / window.taps_per_row,
        steps=1 + (image + weights) / threads / LOADS_IN_FLIGHT,
        outputs=tile.outputs,
        cycles=0.0 if window.weighted else TERM_CYCLES * threads * tile.outputs * window.terms * conflicts**0.5,
    )


def _conflicts(window: WindowReduction, tile: WindowReductionTile) -> int:
    """How many of a warp's threads, at most, read different words of one bank together."""
    pitch = window.span_columns(tile.columns)
    columns, rows = tile.columns // tile.thread_columns, tile.rows // tile.thread_rows
    words = set()
    for lane in range(min(WARP, _busy_threads(window, tile))):
        row, channel = lane // columns % rows, lane // (columns * rows * (window.filters // tile.thread_filters))
        plane = channel * window.depth * window.span_rows(tile.rows)
        row_words = (plane + row * tile.thread_rows * window.stride_rows) * pitch
        words.add(row_words + lane % columns * tile.thread_columns * window.stride_columns)
    return max(Counter(word % BANKS for word in words).values())


def _divisors(extent: int, most: int) -> list[int]:
    return [n for n in range(1, min(extent, most) + 1) if extent % n == 0]


def _busy_threads(window: WindowReduction, tile: WindowReductionTile) -> int:
    """Threads that compute outputs."""
    rows, columns = tile.rows // tile.thread_rows, tile.columns // tile.thread_columns
    return tile.channels * (window.filters // tile.thread_filters) * rows * columns


def _threads(window: WindowReduction, tile: WindowReductionTile) -> int:
    """Threads of an rTask: full warps."""
    return -(-_busy_threads(window, tile) // 32) * 32


def _image_elements(window: WindowReduction, tile: WindowReductionTile) -> int:
    return tile.channels * window.depth * window.span_rows(tile.rows) * window.span_columns(tile.columns)


def _weight_elements(window: WindowReduction, tile: WindowReductionTile) -> int:
    return tile.channels * window.filters * window.terms if window.weighted else 0


def _shared_bytes(window: WindowReduction, tile: WindowReductionTile) -> int:
    return window.itemsize * (_image_elements(window, tile) + _weight_elements(window, tile))


def schedule_window(func: tirx.PrimFunc, window: WindowReduction, tile: WindowReductionTile) -> s_tir.Schedule:
    """Schedule a windowed reduction with one box of outputs in an rTask.

    Raises
    ------
    ScheduleError
        What follows the reduction cannot be inlined into its result.
    ValueError
        The box does not divide the output.
    """
    if not fits(window, tile):
        raise ValueError(f"{tile} does not divide {window}")
    sch = new_schedule(padded_by_edges(func))
    block = _reduction(sch)
    operands = range(len(sch.get(block).reads))
    result = sch.cache_write(block, 0, "local")
    auto_inline_consumer_chain(sch, result)
    threads = _threads(window, tile)
    block_loop, busy, reduced = _tile_loops(sch, block, window, tile)
    for operand in operands:
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, block_loop, preserve_unit_loops=True)
        auto_inline_producers(sch, copy)
        _, thread = sch.split(sch.fuse(*sch.get_loops(copy)[1:]), [None, threads])
        sch.bind(thread, "threadIdx.x")
    compute_where_made(sch, result, busy, keep_unit_loops=True)
    # Split only after the copies are in place: TVM would size them for the idle threads of the last warp too.
    _, thread = sch.split(busy, [None, threads])
    sch.bind(thread, "threadIdx.x")
    sch.annotate(thread, "pragma_unroll_explicit", False)  # nvcc unrolls
    sch.decompose_reduction(block, reduced)
    return sch


def fits(window: WindowReduction, tile: WindowReductionTile) -> bool:
    """Whether a box divides the output and has no more threads than an rTask may have."""
    pairs = (
        (window.channels, tile.channels), (window.rows, tile.rows), (window.columns, tile.columns),
        (window.filters, tile.thread_filters), (tile.columns, tile.thread_columns), (tile.rows, tile.thread_rows),
    )  # fmt: skip
    return all(n > 0 and extent % n == 0 for extent, n in pairs) and _busy_threads(window, tile) <= MAX_THREADS


def _tile_loops(
    sch: s_tir.Schedule, block: SBlockRV, window: WindowReduction, tile: WindowReductionTile
) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Split the reduction's loops; return the loop over blocks, bound, over busy threads, and the outermost reduced."""
    loops = sch.get_loops(block)
    reduced = [x for x, a in zip(loops, sch.get(block).iter_vars, strict=True) if a.iter_type == REDUCTION]
    outer = [loops[a] for a in window.other_axes]
    parts = []  # of each axis: the loop over threads, and the loop in a thread
    for axis, size, thread_size in (
        (window.channel_axis, tile.channels, 1),
        (window.filter_axis, window.filters, tile.thread_filters),
        (window.row_axis, tile.rows, tile.thread_rows),
        (window.column_axis, tile.columns, tile.thread_columns),
    ):
        if axis >= 0:
            blocks, threads, inner = sch.split(loops[axis], [None, size // thread_size, thread_size])
            outer.append(blocks)
            parts.append((threads, inner))
    sch.reorder(*outer, *(t for t, _ in parts), *reduced, *(i for _, i in parts))
    block_loop = sch.fuse(*outer)
    busy = sch.fuse(*(t for t, _ in parts))
    sch.bind(block_loop, "blockIdx.x")
    for loop in (*_innermost(sch, reduced), *(i for _, i in parts)):
        sch.unroll(loop)
    return block_loop, busy, reduced[0]


def _innermost(sch: s_tir.Schedule, loops: list[LoopRV]) -> list[LoopRV]:
    """The innermost loops that can be unrolled together."""
    kept: list[LoopRV] = []
    count = 1
    for loop in reversed(loops):
        count *= int(sch.get(loop).extent)
        if count <= MAX_UNROLLED:
            kept.append(loop)
    return kept


def _reduction(sch: s_tir.Schedule) -> SBlockRV | None:
    """The reduction of a function with one output; its groups become an axis of their own."""
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or not one_result(sch):
        return None
    separate_groups(sch, found[0])
    return found[0]


WINDOW_RULE = CudaRule("window", find_window_reduction, window_tiles, WindowReductionTile, window_cost, schedule_window)
