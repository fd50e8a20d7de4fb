"""CPU tilings of convolutions over NCHW images with the filters in vectors.

The window rule has the pixels in vectors, which suits long rows and short sums. This one broadcasts pixels, so
none is computed in vain where rows are short, and fewer bytes of weights are loaded for each product; for that it
transposes its results.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

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
    traffic_us,
)
from ..space import MAX_RTASKS_PER_UNIT, divisors
from ..window.ahead import LINE
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
MAX_RUN = 6
"""Pixels of a register tile that goes on in the next row, at most: each has an address of its own."""
PANEL_SHARE = 1 / 6
"""The share of a core's own cache that the weights of a block of the sum may take."""
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
STEP_CYCLES_OF_32 = 1.2
"""Cycles of a step beside its multiply-adds, fitted to an AMD EPYC of family 25 with vectors of 32 bytes; elsewhere
they are a share of these, `EFFICIENCY`."""
ADDRESS_CYCLES = 1.5
"""Cycles to compute the address of a pixel at the start of an innermost loop, where the pixels are of several rows."""
SUM_CYCLES = 3.0
"""Cycles to keep a vector of sums that are not complete, and to load it again."""
REREAD_CYCLES, FIRST_READ_CYCLES = 0.4, 2.0
"""Cycles that 32 bytes of weights take in a step where they and the image do not fit in a core's own cache, so that
they are read again for each register tile; and where it does not keep the operator's weights, for the first tile."""


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
        sums = _sum_parts(window, simd * vectors, device)
        for row_parts in _row_parts(window, registers // vectors):
            for rows, columns in _shapes(window, registers // vectors, row_parts):
                for groups, parts in splits:
                    count = groups * parts * row_parts
                    if count == 1 or window.batch * count <= max_rtasks:
                        plain = FilterTile(simd, vectors, rows, columns, groups, parts, row_parts)
                        tiles = [replace(plain, sum_parts=k, panels=p) for k in sums for p in _panels(window, plain)]
                        yield from (tile for tile in tiles if tile.sum_parts == 1 or _sums_once(window, tile))


def _panels(window: Window, tile: FilterTile) -> tuple[int, ...]:
    """Whether the pixels of a tile are copied to scratch: both, where they could be read in place."""
    return (0, 1) if window.flat and not FilterLayout.of(window, tile).copied else (0,)


def _sum_parts(window: Window, filters: int, device: DeviceSpec) -> list[int]:
    """Numbers of blocks that the sum is cut into: one, and the least with which the weights of a block stay cached."""
    nbytes = filters * window.taps * ITEM_BYTES["float32"]
    fitting = (d for d in divisors(window.channels) if nbytes <= d * PANEL_SHARE * device.unit_bytes)
    return sorted({1, next(fitting, 1)})


def _sums_once(window: Window, tile: FilterTile) -> bool:
    """Whether no register tile is computed twice: the last ones of a flat image that are in scratch at once may be."""
    layout = FilterLayout.of(window, tile)
    return not (window.one_row and layout.copied) or layout.column_tiles % layout.together == 0


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
    if registers <= MAX_RUN and not window.one_row and window.flat_epilogue:
        found |= {(0, n) for n in (registers - 1, registers) if n > 0 and columns % n and n < rows * columns}
    if columns <= registers and window.flat_epilogue:
        found |= {(r, columns) for r in range(1, min(rows, registers // columns) + 1)}
    yield from sorted(found)


def _tiling(window: Window, tile: FilterTile, device: DeviceSpec) -> Tiling:
    layout = FilterLayout.of(window, tile)
    weights = weight_bytes(window, tile, layout) / (tile.group_parts * tile.filter_parts)
    data = window.data_bytes / (window.batch * tile.group_parts * tile.row_parts)
    rtasks = num_rtasks(window, tile)
    refill = refill_us(weights, data, None, device)
    return Tiling("filters", choices_of(tile), rtasks, _rtask_us(window, tile, layout, rtasks, device), refill)


def _rtask_us(window: Window, tile: FilterTile, layout: FilterLayout, rtasks: int, device: DeviceSpec) -> float:
    """Predict the time of one rTask, in microseconds: from cycles of the inner loop, the transposition and the copy."""
    accumulators, rate = tile.pixels * tile.vectors, fma_vectors(tile.simd, device)
    step = max(accumulators, LATENCY * rate) / rate
    if device.vector_bytes == 32:
        step += split_cycles(tile.vectors, tile.pixels, tile.simd, device) or STEP_CYCLES_OF_32
    else:
        step = step_cycles(step, EFFICIENCY, device)
    step = max(step, (tile.pixels + tile.vectors) / loads_per_cycle(device))
    if window.flat and not layout.copied and tile.columns <= SHORT_PIXELS:
        step += SHORT_CYCLES
    if window.flat and not layout.copied:
        step += _waits_for_pixels(window, tile, layout, device, step)
    if tile.rows == 0:
        step += tile.pixels * ADDRESS_CYCLES / layout.inner
    if device.vector_bytes == 32:
        step += _waits_of_32(window, tile, layout, device)
    parts, weights = tile.group_parts * tile.filter_parts, weight_bytes(window, tile, layout)
    turned = -(-tile.pixels // tile.turned) * tile.turned * tile.vectors
    turn = TURN_CYCLES if accumulators <= MAX_TURNED else SPILT_CYCLES
    tiles = window.groups * layout.blocks / parts * layout.row_tiles * layout.column_tiles
    kept = (tile.sum_parts - 1) * (accumulators * SUM_CYCLES + TILE_CYCLES)
    cycles = tiles * (window.taps * step + turned * turn + TILE_CYCLES + kept)
    if layout.copied and window.one_row:
        panel = PANEL_CYCLES if window.flat else GATHERED_CYCLES
        cycles += window.groups / tile.group_parts * window.channels * layout.column_tiles * panel
    elif layout.copied:
        rows = window.groups / tile.group_parts * window.channels * layout.height
        cycles += rows * (layout.width * 2 / tile.simd + ROW_CYCLES)
    image = window.data_bytes + window.out_bytes
    traffic = traffic_us(weights + image, weights / parts + image / rtasks, rtasks, device)
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), traffic)


def _waits_for_pixels(window: Window, tile: FilterTile, layout: FilterLayout, device: DeviceSpec, step: float) -> float:
    """Cycles that a step waits, on average, for pixels of an image that is read in place and no core's cache holds."""
    kept = KEPT_SHARE * device.unit_bytes
    if window.data_bytes <= kept:
        return 0.0
    instructions = tile.pixels * tile.vectors + tile.vectors + (tile.pixels if tile.vectors > 1 else 0)
    first = max(0.0, tile.columns / LINE * far_cycles(instructions, device) - step)
    near = _inner_bytes(window, tile, layout) <= kept
    return first / (layout.blocks // tile.filter_parts) if near else first


def _waits_of_32(window: Window, tile: FilterTile, layout: FilterLayout, device: DeviceSpec) -> float:
    """Cycles that a step waits for weights with vectors of 32 bytes.

    With longer vectors `EFFICIENCY` has these: where they were added to it, a processor of family 26 was given rTasks
    of fewer filters, which took up to a third longer.
    """
    cycles, kept = 0.0, KEPT_SHARE * device.unit_bytes
    if _inner_bytes(window, tile, layout) > kept:
        cycles += REREAD_CYCLES * tile.vectors
    if weight_bytes(window, tile, layout) > kept * tile.group_parts * tile.filter_parts:
        cycles += FIRST_READ_CYCLES * tile.vectors / layout.together
    return cycles


def _inner_bytes(window: Window, tile: FilterTile, layout: FilterLayout) -> float:
    """Bytes of the weights and the image that the register tiles of a block of filters read, for a block of the sum."""
    panel = weight_bytes(window, tile, layout) / (window.groups * layout.blocks * tile.sum_parts)
    if layout.copied:
        return panel + layout.scratch * ITEM_BYTES["float32"]
    return panel + window.data_bytes / (window.batch * window.groups * tile.row_parts * tile.sum_parts)


def _code(function: Function, window: Window, tile: FilterTile) -> tuple[tirx.PrimFunc, Mapping[int, Pack]]:
    weight = window.weight_of(function.func)
    assert weight is not None
    packs = {weight: pack_of(window, tile, FilterLayout.of(window, tile))}
    return filters_code(function.func, window, tile), packs


FILTERS_RULE = TiledRule("filters", _applicable, _tiles, _tiling, _code)
"""Register tiles of filters and pixels; the rTasks are groups, blocks of filters and bands of rows."""
