"""CPU tilings of sliding windows: register tiles, and splits into rTasks."""

import itertools
import math
from collections.abc import Iterator, Mapping

from tvm import tirx

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ....kernel import Pack
from ...tiling import Function, Tiling, choices_of
from ..cost import (
    KEPT_SHARE,
    RTASK_US,
    far_cycles,
    fma_vectors,
    loads_per_cycle,
    refill_us,
    split_cycles,
    step_cycles,
    stream_us,
    traffic_us,
)
from ..space import MAX_RTASKS_PER_UNIT, divisors
from .code import window_code
from .layout import Layout, WindowTile, pack_of
from .problem import Window
from .read import find_window
from .split import num_rtasks, row_parts_of
from .tiled import TiledRule

FILTERS = (1, 2, 3, 4, 5, 6, 8, 12)
"""Filters of the register tile."""
MAX_ACCUMULATORS = {64: 24}
"""Vectors of accumulators by the bytes of a vector: 24 of the 32 registers of AVX-512, and of 16 elsewhere:"""
MAX_ACCUMULATORS_OF_16 = 12
MAX_VECTORS = 8
"""Vectors of pixels of the register tile, at most."""
MIN_ACCUMULATORS = 10
"""With fewer accumulators the multiply-add units stall."""
EFFICIENCY = 0.97
"""Share of the multiply-add units' peak that the inner loop reaches."""
UNALIGNED = 2.0
"""Loads that a vector counts as which is not aligned to a cache line."""
MIN_BURST = 8
"""Vectors of results that are stored while the next sums are computed."""
APART_CYCLES, ELEMENT_CYCLES = {2: 0.3}, 1.0
"""Cycles to copy an element of an image to its phase, by the stride: of two phases in vectors, of more one by one."""
ROW_CYCLES = 2.0
"""Cycles to start a row of scratch or of the output."""
SHARED_BYTES_PER_CYCLE = 20.0
"""Bytes of an image in scratch that are read in a cycle, for each block of filters, where a core's own cache does not
keep it."""
FIRST_LEVEL_BYTES, SECOND_LEVEL_CYCLES, THIRD_LEVEL_CYCLES = 24 << 10, 1.0, 5.0
"""Capacity for pixels in the first-level cache; and cycles to load a vector from the other levels."""


def _applicable(function: Function) -> Window | None:
    """The window of a function; a transposed one only if its weight is a constant, since that is padded."""
    window = find_window(function.func)
    if window is None or (window.phases is not None and window.weight_of(function.func) not in function.constants):
        return None
    return window


def _tiling(window: Window, tile: WindowTile, device: DeviceSpec) -> Tiling:
    layout = Layout.of(window, tile)
    weights = _weight_bytes(window, tile, layout) / (tile.group_parts * tile.filter_parts)
    data = window.data_bytes / (window.batch * tile.group_parts * tile.row_parts)
    refill = refill_us(weights, data, None, device)
    time_us = _rtask_us(window, tile, layout, device)
    return Tiling("window", choices_of(tile), num_rtasks(window, tile), time_us, refill)


def _tiles(window: Window, device: DeviceSpec) -> Iterator[WindowTile]:
    simd = device.vector_bytes // ITEM_BYTES["float32"]
    size, max_rtasks = window.rows * window.columns, MAX_RTASKS_PER_UNIT * device.units
    for filters, vectors in _shapes(window, simd):
        if window.flat and simd * vectors > size:
            continue
        blocks = -(-window.filters // filters)
        splits = [(g, 1) for g in divisors(window.groups)]
        splits += [(window.groups, f) for f in divisors(blocks) if f > 1]
        max_parts = -(-size // (simd * vectors)) if window.flat else window.rows
        for (groups, parts), rows in itertools.product(splits, row_parts_of(max_parts)):
            if groups * parts * rows == 1 or window.batch * groups * parts * rows <= max_rtasks:
                yield WindowTile(simd, filters, vectors, groups, parts, rows)


def _shapes(window: Window, simd: int) -> Iterator[tuple[int, int]]:
    """Register tiles: for each number of filters those with most vectors."""
    registers = MAX_ACCUMULATORS.get(simd * 4, MAX_ACCUMULATORS_OF_16)
    for filters in FILTERS:
        if filters > window.filters or (window.groups > 1 and window.filters % filters):
            continue
        most_vectors = min(MAX_VECTORS, registers // filters)
        for vectors in range(most_vectors, max(0, most_vectors - 4), -1):
            yield filters, vectors


def _rtask_us(window: Window, tile: WindowTile, layout: Layout, device: DeviceSpec) -> float:
    """Predict the time of one rTask, in microseconds: from cycles of the inner loop, and of the copies around it."""
    parts = tile.group_parts * tile.filter_parts
    aligned = 1 if window.flat and window.rows * window.columns % tile.simd == 0 else UNALIGNED
    # Vectors are loaded as slowly as multiply-adds are begun; with too few accumulators these stall.
    rate = fma_vectors(tile.simd, device)
    loads = (tile.filters + aligned * tile.vectors * 2 / rate) / loads_per_cycle(device)
    multiply_adds = max(tile.filters * tile.vectors * 2 / rate, MIN_ACCUMULATORS) / 2
    multiply_adds += split_cycles(tile.vectors, tile.filters, tile.simd, device)
    tap = max(step_cycles(multiply_adds, EFFICIENCY, device), loads / EFFICIENCY)
    tap += _line_cycles(window, tile, layout, device) * tile.vectors
    if window.flat and window.data_bytes > KEPT_SHARE * device.unit_bytes:
        # The first block of filters fetches the pixels of a tile; lines that follow one another come together.
        far = far_cycles((tile.filters + 1) * (tile.vectors + 1) - 1, device)
        tap += max(0.0, far - tap) / (layout.blocks // tile.filter_parts)
    phases = math.prod(window.phases.stride) if window.phases else 1
    blocks = phases * window.groups * layout.blocks / parts
    cycles = blocks * layout.steps * window.taps * tap
    elements = blocks * tile.filters * layout.steps * tile.pixels
    if window.flat:
        cycles += elements / tile.simd * 2
        # Where multiply-adds take as long as a tile of few accumulators hides, larger ones only store in longer bursts.
        cycles += blocks * layout.steps * max(0, tile.filters * tile.vectors - MIN_BURST) * (2 - rate)
    else:
        copy_cycles = 2 / tile.simd if window.stride[1] == 1 else APART_CYCLES.get(window.stride[1], ELEMENT_CYCLES)
        rows = window.groups / tile.group_parts * window.channels * layout.height * layout.phases[0]
        cycles += rows * (layout.width * layout.phases[1] * copy_cycles + ROW_CYCLES)
        scratch = layout.scratch(window, tile) * ITEM_BYTES["float32"]
        if scratch > KEPT_SHARE * device.unit_bytes:
            cycles += blocks * scratch / SHARED_BYTES_PER_CYCLE
        cycles += elements / tile.simd * 2.5 + blocks * tile.filters * layout.rows * ROW_CYCLES
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), _traffic_us(window, tile, layout, device))


def _line_cycles(window: Window, tile: WindowTile, layout: Layout, device: DeviceSpec) -> float:
    """Cycles that a tap waits for each vector of pixels, on average: the first tap that uses a vector fetches it."""
    if window.channels * tile.pixels * 4 <= FIRST_LEVEL_BYTES:
        return 0.0
    in_second_level = layout.scratch(window, tile) * 4 <= device.unit_bytes / 2
    uses = math.prod(window.kernel) / math.prod(layout.phases)
    return (SECOND_LEVEL_CYCLES if in_second_level else THIRD_LEVEL_CYCLES) / uses


def _traffic_us(window: Window, tile: WindowTile, layout: Layout, device: DeviceSpec) -> float:
    """Time of the memory traffic: each rTask reads its weights, and all together read the image once."""
    if window.weight is None:
        return stream_us(window.data_bytes, window.out_bytes, num_rtasks(window, tile), device)
    weights, image = _weight_bytes(window, tile, layout), window.data_bytes + window.out_bytes
    rtasks = num_rtasks(window, tile)
    nbytes = weights / (tile.group_parts * tile.filter_parts) + image / rtasks
    return traffic_us(weights + image, nbytes, rtasks, device)


def _weight_bytes(window: Window, tile: WindowTile, layout: Layout) -> int:
    """Bytes of all packed weights; 0 for a pool."""
    if window.weight is None:
        return 0
    if window.phases is not None:
        return math.prod(pack_of(window, tile, layout).padded) * ITEM_BYTES["float32"]
    return window.groups * layout.blocks * tile.filters * window.taps * ITEM_BYTES["float32"]


def _code(function: Function, window: Window, tile: WindowTile) -> tuple[tirx.PrimFunc, Mapping[int, Pack]]:
    param = window.weight_of(function.func)
    packed = param in function.constants
    packs = {param: pack_of(window, tile, Layout.of(window, tile))} if param is not None and packed else {}
    return window_code(function.func, window, tile, packed=packed), packs


WINDOW_RULE = TiledRule("window", _applicable, _tiles, _tiling, _code)
"""Register tiles of filters and pixels; the rTasks are groups, blocks of filters and bands of rows."""
