"""CPU tilings of sliding windows: which register tile, and into which rTasks."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tvm import tirx

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ....kernel import ScheduledKernel
from ...tiling import Function, Tiling
from ..cost import RTASK_US, late_us, traffic_us
from ..space import MOST_RTASKS_PER_UNIT, choices_of, divisors, finish, pick, useful
from .code import window_code
from .form import Window
from .layout import Layout, Tile, pack_of
from .read import find_window

FILTERS = (1, 2, 3, 4, 5, 6, 8, 12)
"""Heights of the register tile."""
MOST_ACCUMULATORS = {64: 24}
"""Vectors of accumulators, by the bytes of a vector; of the 32 registers of AVX-512, and of 16 elsewhere:"""
FEW_ACCUMULATORS = 12
MOST_VECTORS = 8
"""Length of the register tile."""
FEWEST_ACCUMULATORS = 10
ROW_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
EFFICIENCY = 0.97
"""Share of the multiply-add units' peak that the inner loop reaches."""
UNALIGNED = 2.0
"""Loads that a vector counts for which does not begin with a cache line."""
ROW_CYCLES = 2.0
"""Cycles to begin a row: of scratch, of the output."""
FIRST_LEVEL_BYTES, SECOND_LEVEL_CYCLES, THIRD_LEVEL_CYCLES = 24 << 10, 1.0, 5.0
"""Room for pixels in the first-level cache; and what a vector costs that comes from the others."""

_window = lru_cache(maxsize=64)(find_window)


@dataclass(frozen=True, slots=True)
class WindowRule:
    """Register tiles of filters and pixels; the rTasks are groups, blocks of filters and bands of rows."""

    name: str = "window"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All register tiles with all cuts."""
        window = _applicable(function)
        if window is None:
            return ()
        return useful([_tiling(window, tile, function.device) for tile in _tiles(window, function.device)])

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Write the loops of one of them."""
        window = _applicable(function)
        if window is None:
            return None
        tile = pick(_tiles(window, function.device), choices)
        if tile is None:
            return None
        param = _weight(function, window)
        packs = {param: pack_of(window, tile, Layout.of(window, tile))} if param is not None else {}
        code = window_code(function.func, window, tile)
        return finish(function, _tiling(window, tile, function.device), code, packs)


def _weight(function: Function, window: Window) -> int | None:
    if window.weight is None:
        return None
    return next(i for i, p in enumerate(function.func.params) if p.same_as(window.weight))


def _applicable(function: Function) -> Window | None:
    """The window of a function, if its weight is a constant, which can be packed."""
    window = _window(function.func)
    if window is None or (window.weight is not None and _weight(function, window) not in function.constants):
        return None
    return window


def _tiling(window: Window, tile: Tile, device: DeviceSpec) -> Tiling:
    choices = choices_of(tile)
    weights = _weight_bytes(window, tile, Layout.of(window, tile)) / (tile.group_parts * tile.filter_parts)
    data = _bytes(window.data) / (window.batch * tile.group_parts * tile.row_parts)
    late = late_us(weights, data, None, device)
    return Tiling("window", choices, _count(window, tile), rtask_us(window, tile, device), late)


def _count(window: Window, tile: Tile) -> int:
    return window.batch * tile.group_parts * tile.filter_parts * tile.row_parts


def _tiles(window: Window, device: DeviceSpec) -> Iterator[Tile]:
    lanes = device.vector_bytes // ITEM_BYTES["float32"]
    size, most_rtasks = window.rows * window.columns, MOST_RTASKS_PER_UNIT * device.units
    for filters, vectors in _shapes(window, lanes):
        if window.flat and lanes * vectors > size:
            continue
        blocks = -(-window.filters // filters)
        cuts = [(g, 1) for g in divisors(window.groups)]
        cuts += [(window.groups, f) for f in divisors(blocks) if f > 1]
        most = -(-size // (lanes * vectors)) if window.flat else window.rows
        row_parts = [r for r in ROW_PARTS if r <= most and -(-most // -(-most // r)) == r]  # no rTask without rows
        for (groups, parts), rows in itertools.product(cuts, row_parts):
            if groups * parts * rows == 1 or window.batch * groups * parts * rows <= most_rtasks:
                yield Tile(lanes, filters, vectors, groups, parts, rows)


def _shapes(window: Window, lanes: int) -> Iterator[tuple[int, int]]:
    """Register tiles, the large ones of each height."""
    registers = MOST_ACCUMULATORS.get(lanes * 4, FEW_ACCUMULATORS)
    for filters in FILTERS:
        if filters > window.filters or (window.groups > 1 and window.filters % filters):
            continue
        most = min(MOST_VECTORS, registers // filters)
        for vectors in range(most, max(0, most - 4), -1):
            yield filters, vectors


def rtask_us(window: Window, tile: Tile, device: DeviceSpec) -> float:
    """Predict the time of one rTask, in microseconds: from cycles of the inner loop, and of the copies around it."""
    layout = Layout.of(window, tile)
    parts = tile.group_parts * tile.filter_parts
    aligned = 1 if window.flat and window.rows * window.columns % tile.lanes == 0 else UNALIGNED
    # Two multiply-adds or two loads a cycle; too few accumulators wait for each other.
    loads = tile.filters + aligned * tile.vectors
    tap = max(tile.filters * tile.vectors, loads, FEWEST_ACCUMULATORS) / 2 / EFFICIENCY
    tap += _line_cycles(window, tile, layout, device) * tile.vectors
    phases = math.prod(window.phases.stride) if window.phases else 1
    blocks = phases * window.groups * layout.blocks / parts
    cycles = blocks * layout.steps * window.taps * tap
    elements = blocks * tile.filters * layout.steps * tile.pixels
    if window.flat:
        cycles += elements / tile.lanes * 2
    else:
        cost = 2 / tile.lanes if window.stride[1] == 1 else 0.3
        rows = window.groups / tile.group_parts * window.channels * layout.height * layout.phases[0]
        cycles += rows * (layout.width * layout.phases[1] * cost + ROW_CYCLES)
        cycles += elements / tile.lanes * 2.5 + blocks * tile.filters * layout.rows * ROW_CYCLES
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), _traffic_us(window, tile, layout, device))


def _line_cycles(window: Window, tile: Tile, layout: Layout, device: DeviceSpec) -> float:
    """Cycles that a tap waits for each vector of pixels: the first of the taps that share it fetches it."""
    if window.channels * tile.pixels * 4 <= FIRST_LEVEL_BYTES:
        return 0.0
    near = layout.scratch(window, tile) * 4 <= device.unit_bytes / 2
    shared = math.prod(window.kernel) / math.prod(layout.phases)
    return (SECOND_LEVEL_CYCLES if near else THIRD_LEVEL_CYCLES) / shared


def _traffic_us(window: Window, tile: Tile, layout: Layout, device: DeviceSpec) -> float:
    """Weights are read once by each rTask that needs them; the image once by all together."""
    weights, image = _weight_bytes(window, tile, layout), _bytes(window.data) + _bytes(window.out)
    nbytes = weights / (tile.group_parts * tile.filter_parts) + image / _count(window, tile)
    return traffic_us(weights + image, nbytes, device)


@lru_cache(maxsize=256)  # asked for each tiling
def _bytes(buffer: tirx.Buffer) -> int:
    return math.prod(int(s) for s in buffer.shape) * ITEM_BYTES["float32"]


def _weight_bytes(window: Window, tile: Tile, layout: Layout) -> int:
    """Of all packed weights; a pool has none."""
    return 0 if window.weight is None else math.prod(pack_of(window, tile, layout).padded) * ITEM_BYTES["float32"]
