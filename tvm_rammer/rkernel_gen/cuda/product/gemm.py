"""CUDA tilings of convolutions and matrix products in shared memory and registers, without tensor cores."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import tirx
from tvm.s_tir.schedule import ScheduleError

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ...tiling import Function
from ..cost import SECTOR_BYTES, WARP, Cost, loop_cycles, port_bytes
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import Code, CudaRule
from .code import Writer, product_code
from .fetch import VECTOR
from .parts import read_product
from .problem import Gemm, find_gemm, padded
from .steps import Covering
from .tile import GemmTile

SIDES = (8, 16, 32, 64, 128)
"""Extents of a tile in I and J: multiples of a memory transaction of 32 bytes."""

DEPTHS = (8, 16, 32, 64, 128, 256)
"""Extents of a tile in K."""

THREAD_TILES = ((1, 2), (2, 1), (2, 2), (2, 4), (4, 2), (4, 4), (4, 8), (8, 4), (8, 8))
"""Extents in I and J of what one thread computes, in registers."""

SLICES = (1, 2, 4, 8, 16, 32, 64)
"""Teams of threads, each of which has its own part of K."""

SMALLEST_TEAM = 4
"""Threads of a team that is a part of a warp, at least."""

MAX_SUMS = 32
"""Results of a thread in such a team, at most: its registers also hold much of the next step."""

MIN_DEPTH = 4
"""Steps of K of a team, at least, from one barrier to the next."""

MAX_STAGED = 40
"""Elements that a thread loads in advance, at most: they take registers."""

PLAIN_ADDRESS, WINDOW_ADDRESS, FUSED_ADDRESS = 3, 8, 50
"""Instructions to load and stage an element of A: of a matrix; of an image by windows, the position of which is that of
the step, or differs within a step."""

SUMS_PER_CYCLE = 10
"""Sums that go through shared memory, and are added up, in a cycle."""

MAX_PADDED_WORK = 2.0
"""Padded work at most, relative to that of the smallest tile."""


@dataclass(frozen=True, slots=True)
class Simt:
    """A product.

    Parameters
    ----------
    gemm : Gemm
    taps, channels : int
        Positions of a window, and terms of the sum at each.
    weights : tuple of int
        Parameters that are constants, which can be packed.
    device : DeviceSpec
    """

    gemm: Gemm
    taps: int
    channels: int
    weights: tuple[int, ...]
    device: DeviceSpec


def find_simt(function: Function) -> Simt | None:
    """Return the product, or None where the function is none, or does more than can be inlined."""
    gemm = find_gemm(function)
    if gemm is None:
        return None
    try:
        product = read_product(function.func)
    except (ScheduleError, AssertionError, ValueError):
        return None
    constants = tuple(sorted(function.constants))
    return Simt(gemm, product.taps.extent, product.channels.extent, constants, function.device)


def gemm_tiles(problem: Simt, device: DeviceSpec) -> Iterator[GemmTile]:
    """All aligned tiles that fit an rTask, without those that pad too much."""
    gemm = problem.gemm
    least_work = padded(gemm.i, SIDES[0]) * padded(gemm.j, SIDES[0])
    for i, j in itertools.product(SIDES, SIDES):
        if padded(gemm.i, i) * padded(gemm.j, j) > MAX_PADDED_WORK * least_work:
            continue
        for k, (mi, mj), slices in itertools.product(DEPTHS, THREAD_TILES, SLICES):
            tile = GemmTile(i, j, k, mi, mj, slices)
            if _is_aligned(tile, device) and (k <= 2 * gemm.k or k == DEPTHS[0]):
                yield tile


def _is_aligned(tile: GemmTile, device: DeviceSpec) -> bool:
    """Whether a tile is whole warps, each thread loads and adds up as much as the others, and it fits an rTask."""
    threads = tile.threads
    few_registers = tile.team >= device.warp or tile.mi * tile.mj <= MAX_SUMS
    return (
        (tile.team % device.warp == 0 or device.warp % tile.team == 0)
        and tile.team >= SMALLEST_TEAM
        and few_registers
        and threads % device.warp == 0
        and 2 * device.warp <= threads <= MAX_THREADS
        and tile.k >= MIN_DEPTH * tile.slices
        and (tile.i * tile.k) % threads == 0
        and (tile.j * tile.k) % threads == 0
        and ((tile.i * tile.j) % threads == 0 or threads % (tile.i * tile.j) == 0)
        and (tile.i + tile.j) * tile.k <= MAX_STAGED * threads
        and tile.shared_bytes <= MAX_SHARED
    )


def gemm_cost(problem: Simt, tile: GemmTile) -> Cost:
    """The work of an rTask of a product."""
    gemm = problem.gemm
    covering = Covering(problem.taps, problem.channels, tile.k)
    steps = covering.count
    itemsize = ITEM_BYTES[gemm.dtypes[0]]
    num_rtasks = rtasks_of(problem, tile)
    step_bytes = load_bytes(problem, tile, itemsize)
    depth, vectors = tile.k // tile.slices, sum(-(-m // VECTOR) for m in (tile.mi, tile.mj))
    a, b = tile.i * tile.k / tile.threads, tile.j * tile.k / tile.threads
    address = FUSED_ADDRESS if covering.fused else PLAIN_ADDRESS if problem.taps == 1 else WINDOW_ADDRESS
    passes = depth * (tile.mi + tile.mj) / 2 + 2 * a + b
    instructions = depth * (tile.mi * tile.mj + vectors) + address * a + b
    sums = tile.slices * tile.i * tile.j / SUMS_PER_CYCLE if tile.staged else 0.0
    loads = step_bytes / port_bytes(problem.device, num_rtasks)
    loop, busy = loop_cycles(steps, tile.threads // WARP, instructions, passes, loads)
    return Cost(
        num_rtasks=num_rtasks,
        threads=tile.threads,
        flops=2.0 * tile.i * tile.j * tile.k * steps,
        nbytes=step_bytes * steps + itemsize * tile.i * tile.j,
        steps=2 if tile.staged else 1,
        outputs=tile.mi * tile.mj,
        cycles=loop + sums,
        busy_cycles=busy + sums,
    )


def rtasks_of(problem: Simt, tile: GemmTile) -> int:
    """How many tiles cover the results."""
    gemm = problem.gemm
    return gemm.batch * -(-gemm.i // tile.i) * -(-gemm.j // tile.j)


def load_bytes(problem: Simt, tile: GemmTile, itemsize: int) -> int:
    """What a step loads; the rows of an image, and of a window of it, mostly begin within a sector of the cache."""
    aligned = problem.taps == 1 and itemsize * problem.gemm.i % SECTOR_BYTES == 0
    return itemsize * (tile.i + tile.j) * tile.k + (0 if aligned else SECTOR_BYTES * tile.k)


def schedule_gemm(func: tirx.PrimFunc, problem: Simt, tile: GemmTile) -> Code:
    """Make the kernel of a product with one tile size.

    Raises
    ------
    ScheduleError, AssertionError, ValueError
        What surrounds the product cannot be inlined, or the tile does not fit it.
    """
    return Code(*product_code(Writer, func, tile, problem.weights))


GEMM_RULE = CudaRule("gemm", find_simt, gemm_tiles, GemmTile, gemm_cost, schedule_gemm)
