"""CPU tilings of convolutions 3x3 of stride 1 by Winograd's algorithm.

A tile of 2x2 results takes 16 products of each channel and filter, and not 36. What is saved pays for the
transformations where there are enough channels and filters. Weights are transformed at compile time; they are 16/9 as
large then. Results are rounded in other places than a sum.
"""

from collections.abc import Iterator, Mapping

from tvm import tirx

from .... import debug
from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ....kernel import Pack
from ...tiling import Function, Tiling, choices_of
from ..cost import RTASK_US, fma_vectors, loads_per_cycle, refill_us, step_cycles, traffic_us
from ..space import MAX_RTASKS_PER_UNIT, divisors
from ..window.problem import Window
from ..window.read import find_window
from ..window.rule import EFFICIENCY, MAX_ACCUMULATORS, MAX_ACCUMULATORS_OF_16, ROW_CYCLES
from ..window.split import num_rtasks, row_parts_of
from ..window.tiled import TiledRule
from .code import winograd_code
from .layout import WinogradLayout, WinogradTile, pack_of, weight_bytes
from .matrices import TRANSFORMATIONS, terms

FILTERS = (4, 6, 8, 12)
"""Filters of the register tile."""
MAX_VECTORS = 6
"""Vectors of tiles of the register tile, at most."""
MIN_CHANNELS, MIN_FILTERS = 8, 8
"""With fewer the transformations take longer than the products."""
MIN_ACCUMULATORS = 10
"""With fewer accumulators the multiply-add units stall."""
STORE_CYCLES, START_CYCLES = 2.0, 20.0
"""Cycles to store a vector of products; and to start a register tile."""
FIRST_LEVEL_BYTES, SECOND_LEVEL_CYCLES = 24 << 10, 1.0
"""Capacity for a product's pixels in the first-level cache; and cycles to load a vector from the second one."""
COPY_CYCLES = 0.5
"""Cycles to copy a pixel to its phase."""


def _applicable(function: Function) -> Window | None:
    """The convolution of a function, if its weight is a constant, so that it can be transformed."""
    if not debug.winograd():
        return None
    window = find_window(function.func)
    if window is None or window.weight is None or window.maximum or window.phases is not None or window.rank != 2:
        return None
    if (window.kernel, window.stride, window.dilation) != ((3, 3), (1, 1), (1, 1)):
        return None
    if (
        window.initial != 0
        or (window.fill != 0 and not window.inside)
        or window.channels < MIN_CHANNELS
        or window.filters < MIN_FILTERS
    ):
        return None
    return window if window.weight_of(function.func) in function.constants else None


def _tiles(window: Window, device: DeviceSpec) -> Iterator[WinogradTile]:
    simd, max_rtasks = device.vector_bytes // ITEM_BYTES["float32"], MAX_RTASKS_PER_UNIT * device.units
    registers = MAX_ACCUMULATORS.get(device.vector_bytes, MAX_ACCUMULATORS_OF_16)
    for size in TRANSFORMATIONS:
        row_parts = row_parts_of(-(-window.rows // size))
        for filters in FILTERS:
            if window.groups > 1 and window.filters % filters:
                continue
            blocks = -(-window.filters // filters)
            splits = [(g, 1) for g in divisors(window.groups)]
            splits += [(window.groups, f) for f in divisors(blocks) if f > 1]
            for vectors in range(1, min(MAX_VECTORS, registers // filters) + 1):
                for groups, parts in splits:
                    for rows in row_parts:
                        count = groups * parts * rows
                        if count == 1 or window.batch * count <= max_rtasks:
                            yield WinogradTile(simd, size, filters, vectors, groups, parts, rows)


def _tiling(window: Window, tile: WinogradTile, device: DeviceSpec) -> Tiling:
    layout = WinogradLayout.of(window, tile)
    weights = weight_bytes(window, tile, layout) / (tile.group_parts * tile.filter_parts)
    data = window.data_bytes / (window.batch * tile.group_parts * tile.row_parts)
    refill = refill_us(weights, data, None, device)
    return Tiling(
        "winograd", choices_of(tile), num_rtasks(window, tile), _rtask_us(window, tile, layout, device), refill
    )


def _rtask_us(window: Window, tile: WinogradTile, layout: WinogradLayout, device: DeviceSpec) -> float:
    """Predict the time of one rTask, in microseconds: from cycles of the products and of the transformations."""
    by, rate = tile.by, fma_vectors(tile.simd, device)
    accumulators, row_vectors = tile.filters * tile.vectors, layout.step * layout.row_vectors
    loads = (tile.filters + tile.vectors) / loads_per_cycle(device)
    multiply_adds = max(accumulators / rate, MIN_ACCUMULATORS / 2)
    term = max(step_cycles(multiply_adds, EFFICIENCY, device), loads / EFFICIENCY)
    if window.channels * layout.line * 4 > FIRST_LEVEL_BYTES:
        term += SECOND_LEVEL_CYCLES * tile.vectors
    register_tile = window.channels * term + accumulators * STORE_CYCLES + START_CYCLES
    products = by.products * layout.tiles * register_tile
    into = by.products * (1 + STORE_CYCLES) + (2 * by.points * terms(by.image)) / 2
    out_of = by.products + (by.points + tile.size) * terms(by.result) / 2 + tile.size**2 * (1 + STORE_CYCLES)
    copied = (layout.step + 1) * (layout.tile_columns + 1) * tile.size**2 * COPY_CYCLES
    copied += (layout.step + 1) * tile.size**2 * ROW_CYCLES
    blocks = layout.blocks / tile.filter_parts
    stored = tile.filters * (row_vectors * out_of + layout.step * tile.size * ROW_CYCLES)
    step = window.channels * (row_vectors * into + copied) + blocks * (products + stored)
    cycles = window.groups / tile.group_parts * layout.steps * step
    weights, image = weight_bytes(window, tile, layout), window.data_bytes + window.out_bytes
    rtasks = num_rtasks(window, tile)
    each = weights / (tile.group_parts * tile.filter_parts) * layout.steps + image / rtasks
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), traffic_us(weights + image, each, rtasks, device))


def _code(function: Function, window: Window, tile: WinogradTile) -> tuple[tirx.PrimFunc, Mapping[int, Pack]]:
    weight = window.weight_of(function.func)
    assert weight is not None
    packs = {weight: pack_of(window, tile, WinogradLayout.of(window, tile))}
    return winograd_code(function.func, window, tile), packs


WINOGRAD_RULE = TiledRule("winograd", _applicable, _tiles, _tiling, _code)
"""Register tiles of filters and tiles; the rTasks are groups, blocks of filters and bands of rows of tiles."""
