"""CUDA tilings of windows that slide over an image: depthwise and grouped convolutions of few channels, pooling.

An rTask makes a box of channels, rows and columns. The part of the image under it, padded, is brought to shared memory
together; each thread makes some pixels of a row for some filters of a group, and keeps them in registers. A product of
matrices would waste most of its tile on such convolutions, and read each pixel as often as windows cover it.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.s_tir.dlight.gpu.matmul import auto_inline_consumer_chain, auto_inline_producers
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ....device import DeviceSpec
from ...analysis.anchor import REDUCTION, blocks_of, is_reduction, one_result
from ...tiling import Function
from ..cost import Cost
from ..groups import separate_groups
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import CudaRule, start
from .form import Window, window_of

MOST_CHANNELS, MOST_FILTERS = 32, 32
"""Convolutions with more channels and filters a group are products of matrices."""

MOST_OUTPUTS = 32
"""Results that a thread keeps in registers."""

TRANSACTION = 8
"""Columns that a box has at least, where the output has them: a memory transaction of 32 bytes."""

FILLED = 0.75
"""Share of an rTask's threads that have something to make, at least."""

BANKS = 32
"""Of shared memory: neighbouring threads whose pixels are a multiple of some banks apart wait for one another."""

MOST_UNROLLED = 64
"""Terms of a window that are unrolled: 7 x 7."""

IN_A_TRIP = 8
"""Pixels that a thread brings to shared memory at once."""


@dataclass(frozen=True, slots=True)
class WindowTile:
    """An rTask's box of outputs, and the filters, lines and pixels of a line that one thread makes."""

    channels: int
    rows: int
    columns: int
    filters: int
    lines: int
    pixels: int

    @property
    def outputs(self) -> int:
        """Results of a thread."""
        return self.filters * self.lines * self.pixels


def find_window(function: Function) -> Window | None:
    """Describe a function with one output and one reduction, over windows of few channels; None for others."""
    sch = start(function.func)
    block = _reduction(sch)
    if block is None:
        return None
    window = window_of(sch.get(block))
    if window is None or window.filters > MOST_FILTERS or window.depth > MOST_CHANNELS:
        return None
    return window


def window_tiles(window: Window, device: DeviceSpec) -> Iterator[WindowTile]:
    """All boxes that divide the output, whose threads fill most of their warps and whose image fits."""
    lines = [(n, m) for n in _divisors(window.rows, 56) for m in (1, 2, 4) if n % m == 0]
    pixels = [(n, m) for n in _divisors(window.columns, 128) for m in (1, 2, 4, 7, 8) if n % m == 0]
    for filters, (rows, mine), (columns, pixel) in itertools.product(_divisors(window.filters, 8), lines, pixels):
        if filters * mine * pixel > MOST_OUTPUTS or columns < min(window.columns, TRANSACTION):
            continue
        for channels in _divisors(window.channels, 64):
            tile = WindowTile(channels, rows, columns, filters, mine, pixel)
            workers = _workers(window, tile)
            full = FILLED * _threads(window, tile) <= workers <= MAX_THREADS
            if full and _shared(window, tile) <= MAX_SHARED:
                yield tile


def window_cost(window: Window, tile: WindowTile) -> Cost:
    """What an rTask of windows does."""
    boxes = (window.channels // tile.channels) * (window.rows // tile.rows) * (window.columns // tile.columns)
    threads = _threads(window, tile)
    image, weights = _image(window, tile), _weights(window, tile)
    made = tile.channels * window.filters * tile.rows * tile.columns
    # A thread reads the pixels under a row of its windows once, and the weights of its filters, which its warp shares.
    conflicts = math.gcd(tile.pixels * window.stride_columns, BANKS)
    pixels = conflicts * tile.lines * window.span_columns(tile.pixels)
    filters = tile.filters * window.window_columns / 8 if weights else 0
    return Cost(
        num_rtasks=window.others * boxes,
        threads=threads,
        flops=2.0 * window.terms * threads * tile.outputs,
        nbytes=window.itemsize * (image + weights + made),
        shared_bytes=window.itemsize * threads * (pixels + filters) * window.terms / window.window_columns,
        steps=1 + (image + weights) / threads / IN_A_TRIP,
        outputs=tile.outputs,
    )


def _divisors(extent: int, most: int) -> list[int]:
    return [n for n in range(1, min(extent, most) + 1) if extent % n == 0]


def _workers(window: Window, tile: WindowTile) -> int:
    """Threads that have something to make."""
    return tile.channels * (window.filters // tile.filters) * (tile.rows // tile.lines) * (tile.columns // tile.pixels)


def _threads(window: Window, tile: WindowTile) -> int:
    """Threads of an rTask: whole warps."""
    return -(-_workers(window, tile) // 32) * 32


def _image(window: Window, tile: WindowTile) -> int:
    return tile.channels * window.depth * window.span_rows(tile.rows) * window.span_columns(tile.columns)


def _weights(window: Window, tile: WindowTile) -> int:
    return tile.channels * window.filters * window.terms if window.weighted else 0


def _shared(window: Window, tile: WindowTile) -> int:
    return window.itemsize * (_image(window, tile) + _weights(window, tile))


def schedule_window(func: tirx.PrimFunc, window: Window, tile: WindowTile) -> s_tir.Schedule:
    """Schedule windows with one box of outputs in an rTask.

    Raises
    ------
    ScheduleError
        What comes after the windows cannot be inlined into their result.
    ValueError
        The box does not divide the output.
    """
    if not fits(window, tile):
        raise ValueError(f"{tile} does not divide {window}")
    sch = start(func)
    block = _reduction(sch)
    operands = range(len(sch.get(block).reads))
    result = sch.cache_write(block, 0, "local")
    auto_inline_consumer_chain(sch, result)
    threads = _threads(window, tile)
    block_loop, workers, summed = _tile_loops(sch, block, window, tile)
    for operand in operands:
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, block_loop, preserve_unit_loops=True)
        auto_inline_producers(sch, copy)
        _, lane = sch.split(sch.fuse(*sch.get_loops(copy)[1:]), [None, threads])
        sch.bind(lane, "threadIdx.x")
    sch.reverse_compute_at(result, workers, preserve_unit_loops=True)
    # Only now: TVM would make room for what the last warp's idle threads would need.
    _, thread = sch.split(workers, [None, threads])
    sch.bind(thread, "threadIdx.x")
    sch.annotate(thread, "pragma_unroll_explicit", False)  # left to nvcc
    sch.decompose_reduction(block, summed)
    return sch


def fits(window: Window, tile: WindowTile) -> bool:
    """Whether a box divides the output and has no more threads than an rTask may have."""
    pairs = (
        (window.channels, tile.channels), (window.rows, tile.rows), (window.columns, tile.columns),
        (window.filters, tile.filters), (tile.columns, tile.pixels), (tile.rows, tile.lines),
    )  # fmt: skip
    return all(n > 0 and extent % n == 0 for extent, n in pairs) and _workers(window, tile) <= MAX_THREADS


def _tile_loops(
    sch: s_tir.Schedule, block: SBlockRV, window: Window, tile: WindowTile
) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Split the loops of the windows; return that of blocks, bound, that of workers, and the outermost of the sum."""
    loops = sch.get_loops(block)
    reduced = [x for x, a in zip(loops, sch.get(block).iter_vars, strict=True) if a.iter_type == REDUCTION]
    outer = [loops[a] for a in window.other_axes]
    parts = []  # of each axis: threads, then what a thread makes
    for axis, size, mine in (
        (window.channel_axis, tile.channels, 1),
        (window.filter_axis, window.filters, tile.filters),
        (window.row_axis, tile.rows, tile.lines),
        (window.column_axis, tile.columns, tile.pixels),
    ):
        if axis >= 0:
            blocks, workers, inner = sch.split(loops[axis], [None, size // mine, mine])
            outer.append(blocks)
            parts.append((workers, inner))
    sch.reorder(*outer, *(w for w, _ in parts), *reduced, *(i for _, i in parts))
    block_loop = sch.fuse(*outer)
    workers = sch.fuse(*(w for w, _ in parts))
    sch.bind(block_loop, "blockIdx.x")
    for loop in (*_innermost(sch, reduced), *(i for _, i in parts)):
        sch.unroll(loop)
    return block_loop, workers, reduced[0]


def _innermost(sch: s_tir.Schedule, loops: list[LoopRV]) -> list[LoopRV]:
    """The innermost loops with few enough iterations together to unroll them."""
    kept, count = [], 1
    for loop in reversed(loops):
        count *= int(sch.get(loop).extent)
        if count <= MOST_UNROLLED:
            kept.append(loop)
    return kept


def _reduction(sch: s_tir.Schedule) -> SBlockRV | None:
    """The only reduction of a function with one output, its groups an axis of their own."""
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or not one_result(sch):
        return None
    separate_groups(sch, found[0])
    return found[0]


WINDOW_RULE = CudaRule("window", find_window, window_tiles, WindowTile, window_cost, schedule_window)
