"""CPU tilings of pools: channels and bands of rows are split into rTasks."""

import itertools
from collections.abc import Iterator, Mapping

from tvm import tirx

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ....kernel import Pack
from ...tiling import Function, Tiling, choices_of
from ..cost import RTASK_US, stream_us
from ..space import MAX_RTASKS_PER_UNIT, divisors
from ..window.problem import Window
from ..window.read import find_window
from ..window.rule import ROW_CYCLES, UNALIGNED
from ..window.split import num_rtasks, row_parts_of
from ..window.tiled import TiledRule
from .code import PoolTile, columns_read, pool_code, rows_of, steps

MAX_STRIDE = 4
"""Distance of columns that shuffles put apart, at most."""
MAX_KERNEL = 16
"""Extents of a window that are unrolled, at most; the sums of larger ones are left to the rule of everything else."""


def _applicable(function: Function) -> Window | None:
    """The pool of a function, if combining rows first is right and pays."""
    window = find_window(function.func)
    if window is None or window.weight is not None or window.filters != 1:
        return None
    (kh, kw), stride = window.kernel, window.stride[1]
    if window.dilation != (1, 1) or not stride <= min(MAX_STRIDE, kw) or max(kh, kw) > MAX_KERNEL:
        return None
    return window if min(window.padding) >= 0 and columns_read(window) > 0 else None


def _tiles(window: Window, device: DeviceSpec) -> Iterator[PoolTile]:
    simd, max_rtasks = device.vector_bytes // ITEM_BYTES["float32"], MAX_RTASKS_PER_UNIT * device.units
    for groups, rows in itertools.product(divisors(window.groups), row_parts_of(window.rows)):
        if groups * rows == 1 or window.batch * groups * rows <= max_rtasks:
            yield PoolTile(simd, groups, rows)


def _tiling(window: Window, tile: PoolTile, device: DeviceSpec) -> Tiling:
    return Tiling("pool", choices_of(tile), num_rtasks(window, tile), _rtask_us(window, tile, device))


def _rtask_us(window: Window, tile: PoolTile, device: DeviceSpec) -> float:
    """Predict the time of one rTask, in microseconds: two loads, one shuffle or one store a cycle."""
    (kh, kw), stride = window.kernel, window.stride[1]
    line = steps(-(-columns_read(window) // stride), tile.simd) * stride * (kh / 2 + stride)
    row = steps(window.columns, tile.simd) * (kw * UNALIGNED / 2 + 1)
    rows = window.groups / tile.group_parts * rows_of(window, tile)
    cycles = rows * (line + row + 2 * ROW_CYCLES)
    traffic = stream_us(window.data_bytes, window.out_bytes, num_rtasks(window, tile), device)
    return RTASK_US + max(cycles / (device.clock_ghz * 1e3), traffic)


def _code(function: Function, window: Window, tile: PoolTile) -> tuple[tirx.PrimFunc, Mapping[int, Pack]]:
    return pool_code(function.func, window, tile), {}


POOL_RULE = TiledRule("pool", _applicable, _tiles, _tiling, _code)
"""Rows of each window first, then columns; the rTasks are channels and bands of rows."""
