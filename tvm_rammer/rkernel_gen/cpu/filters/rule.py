"""CPU tilings of convolutions over NCHW images with the filters in vectors.

The window rule has the pixels in vectors, which suits long rows and short sums. This one broadcasts pixels, so
none is computed in vain where rows are short, and fewer bytes of weights are loaded for each product; for that it
transposes its results.
"""

from collections.abc import Iterator, Mapping

from tvm import tirx

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ....kernel import Pack
from ...analysis.work import nbytes_of
from ...tiling import Function, Tiling, choices_of
from ..cost import RTASK_US, fma_vectors, loads_per_cycle, refill_us, traffic_us
from ..space import MAX_RTASKS_PER_UNIT, divisors
from ..window.problem import Window
from ..window.read import find_window
from ..window.rule import EFFICIENCY, ROW_CYCLES
from ..window.split import num_rtasks, row_parts_of
from ..window.tiled import TiledRule
from .code import filters_code
from .layout import SHORT_PIXELS, FilterLayout, FilterTile, pack_of, weight_bytes

MAX_ACCUMULATORS = {64: 28}
"""Vectors of accumulators by the bytes of a vector: 28 of the 32 registers of AVX-512, and of 16 elsewhere:"""
MAX_ACCUMULATORS_OF_16 = 12
MAX_VECTORS, MAX_VECTORS_OF_BYTES = 2, {32: 3}
"""Vectors of filters of the register tile, at most; and exceptions by the bytes of a vector: 3 x 4 pixels fill 16
registers with the fewest loads, but without a fused multiply-add there is one too few."""
LATENCY = 4
"""Cycles of a multiply-add: as many accumulators as begin in that time hide it."""
TURN_CYCLES, SPILT_CYCLES, MAX_TURNED = 5.0, 12.0, 16
"""Cycles to transpose and store a vector of results; and the same where there are more of them in a register tile,
since they are spilt."""
PANEL_CYCLES, GATHERED_CYCLES = 8.0, 16.0
"""Cycles to copy the pixels of a channel for a register tile; and the same at a stride."""
SHORT_CYCLES = 1.5
"""Cycles that a channel of a register tile waits for its pixels, a short part of a cache line: the line is gone
before the next tile reads it."""
TILE_CYCLES = 20.0
"""Cycles to start a register tile."""


def _applicable(function: Function) -> Window | None:
    """The convolution of a function, if its weight is a constant, so that it can be packed."""
    window = find_window(function.func)
    if window is None or window.weight is None or window.maximum or window.phases is not None:
        return None
    simd = function.device.vector_bytes // ITEM_BYTES["float32"]
    if window.filters < simd or (window.groups > 1 and window.filters % simd):
        return None
    return window if window.weight_of(function.func) in function.constants else None


def _tiles(window: Window, device: DeviceSpec) -> Iterator[FilterTile]:
    simd, max_rtasks = device.vector_bytes // ITEM_BYTES["float32"], MAX_RTASKS_PER_UNIT * device.units
    registers = MAX_ACCUMULATORS.get(device.vector_bytes, MAX_ACCUMULATORS_OF_16)
    for vectors in range(1, MAX_VECTORS_OF_BYTES.get(device.vector_bytes, MAX_VECTORS) + 1):
        if (window.groups > 1 and window.filters % (simd * vectors)) or window.filters <= simd * (vectors - 1):
            continue
        blocks = -(-window.filters // (simd * vectors))
        splits = [(g, 1) for g in divisors(window.groups)]
        splits += [(window.groups, f) for f in divisors(blocks) if f > 1]
        for row_parts in _row_parts(window, registers // vectors):
            for rows, columns in _shapes(window, registers // vectors, row_parts):
                for groups, parts in splits:
                    count = groups * parts * row_parts
                    if count == 1 or window.batch * count <= max_rtasks:
                        yield FilterTile(simd, vectors, rows, columns, groups, parts, row_parts)


def _row_parts(window: Window, registers: int) -> list[int]:
    """Numbers of rTasks that the rows of an image, or the register tiles of one that is a row, are split into."""
    return row_parts_of(-(-window.rows * window.columns // registers) if window.one_row else window.rows)


def _shapes(window: Window, registers: int, row_parts: int) -> Iterator[tuple[int, int]]:
    """Rows and columns of register tiles: as small as they can be for a number of tiles."""
    rows, columns = -(-window.rows // row_parts), window.columns
    if window.one_row:
        rows, columns = 1, window.rows * window.columns
    found = set()
    for size in range(max(1, min(registers // 2, columns)), min(registers, columns) + 1):
        found.add((1, -(-columns // -(-columns // size)) if not window.one_row else size))
    if columns <= registers and window.flat_epilogue:
        found |= {(r, columns) for r in range(1, min(rows, registers // columns) + 1)}
    yield from sorted(found)


def _tiling(window: Window, tile: FilterTile, device: DeviceSpec) -> Tiling:
    layout = FilterLayout.of(window, tile)
    weights = weight_bytes(window, tile, layout) / (tile.group_parts * tile.filter_parts)
    data = nbytes_of(window.data) / (window.batch * tile.group_parts * tile.row_parts)
    rtasks = num_rtasks(window, tile)
    refill = refill_us(weights, data, None, device)
    return Tiling("filters", choices_of(tile), rtasks, _rtask_us(window, tile, layout, rtasks, device), refill)


def _rtask_us(window: Window, tile: FilterTile, layout: FilterLayout, rtasks: int, device: DeviceSpec) -> float:
    """Predict the time of one rTask, in microseconds: from cycles of the inner loop, the transposition and the copy."""
    accumulators, rate = tile.pixels * tile.vectors, fma_vectors(tile.simd, device)
    step = max(accumulators, LATENCY * rate) / rate / EFFICIENCY
    step = max(step, (tile.pixels + tile.vectors) / loads_per_cycle(device))
    if window.flat and not layout.copied and tile.columns <= SHORT_PIXELS:
        step += SHORT_CYCLES
    parts = tile.group_parts * tile.filter_parts
    turned = -(-tile.pixels // tile.turned) * tile.turned * tile.vectors
    turn = TURN_CYCLES if accumulators <= MAX_TURNED else SPILT_CYCLES
    tiles = window.groups * layout.blocks / parts * layout.row_tiles * layout.column_tiles
    cycles = tiles * (window.taps * step + turned * turn + TILE_CYCLES)
    if layout.copied and window.one_row:
        panel = PANEL_CYCLES if window.flat else GATHERED_CYCLES
        cycles += window.groups / tile.group_parts * window.channels * layout.column_tiles * panel
    elif layout.copied:
        rows = window.groups / tile.group_parts * window.channels * layout.height
        cycles += rows * (layout.width * 2 / tile.simd + ROW_CYCLES)
    weights, image = weight_bytes(window, tile, layout), nbytes_of(window.data) + nbytes_of(window.out)
    traffic = traffic_us(weights + image, weights / parts + image / rtasks, device)
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), traffic)


def _code(function: Function, window: Window, tile: FilterTile) -> tuple[tirx.PrimFunc, Mapping[int, Pack]]:
    weight = window.weight_of(function.func)
    assert weight is not None
    packs = {weight: pack_of(window, tile, FilterLayout.of(window, tile))}
    return filters_code(function.func, window, tile), packs


FILTERS_RULE = TiledRule("filters", _applicable, _tiles, _tiling, _code)
"""Register tiles of filters and pixels; the rTasks are groups, blocks of filters and bands of rows."""
