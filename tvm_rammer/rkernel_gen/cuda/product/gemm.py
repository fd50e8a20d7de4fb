"""CUDA tilings of convolutions and matrix products in shared memory and registers, without tensor cores."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.s_tir.dlight.gpu.matmul import auto_inline_consumer_chain, auto_inline_producers
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ...analysis.blocks import new_schedule
from ..cost import Cost
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import CudaRule
from .problem import Gemm, find_gemm, guard_columns, normalise, padded

SIDES = (8, 16, 32, 64, 128)
"""Extents of a tile in I and J: multiples of a memory transaction of 32 bytes."""

DEPTHS = (8, 16, 32, 64)
"""Extents of a tile in K."""

THREAD_TILES = ((1, 1), (2, 2), (2, 4), (4, 2), (4, 4), (4, 8), (8, 4), (8, 8))
"""Extents in I and J of what one thread computes, in registers."""

MAX_UNROLLED = 16
"""Loads of a thread into shared memory that are unrolled, so that they overlap."""

MAX_PADDED_WORK = 2.0
"""Padded work at most, relative to that of the smallest tile."""


@dataclass(frozen=True, slots=True)
class GemmTile:
    """A block computes `i` x `j` outputs, a thread `mi` x `mj` of them, in steps of `k`."""

    i: int
    j: int
    k: int
    mi: int
    mj: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.i // self.mi) * (self.j // self.mj)

    @property
    def shared_bytes(self) -> int:
        """Tiles of both operands in single precision, rows padded against bank conflicts."""
        return 4 * self.k * (self.i + self.j + 8)


def gemm_tiles(gemm: Gemm, device: DeviceSpec) -> Iterator[GemmTile]:
    """All aligned tiles that fit an rTask, without those that pad too much."""
    for i, j, k, (mi, mj) in itertools.product(SIDES, SIDES, DEPTHS, THREAD_TILES):
        tile = GemmTile(i, j, k, mi, mj)
        if tile.threads % device.warp or not device.warp <= tile.threads <= MAX_THREADS:
            continue
        least_work = padded(gemm.i, SIDES[0]) * padded(gemm.j, SIDES[0])
        too_padded = padded(gemm.i, i) * padded(gemm.j, j) > MAX_PADDED_WORK * least_work
        if not too_padded and tile.shared_bytes <= MAX_SHARED and (k <= 2 * gemm.k or k == DEPTHS[0]):
            yield tile


def gemm_cost(gemm: Gemm, tile: GemmTile) -> Cost:
    """The work of an rTask of a product."""
    depth = padded(gemm.k, tile.k)
    itemsize = ITEM_BYTES[gemm.dtypes[0]]
    loads = tile.threads * (tile.mi + tile.mj) * depth
    return Cost(
        num_rtasks=gemm.batch * -(-gemm.i // tile.i) * -(-gemm.j // tile.j),
        threads=tile.threads,
        flops=2.0 * tile.i * tile.j * depth,
        nbytes=itemsize * ((tile.i + tile.j) * depth + tile.i * tile.j),
        shared_bytes=itemsize * loads / 2,  # a warp's threads share about one of two operands
        steps=depth // tile.k,
        outputs=tile.mi * tile.mj,
    )


def schedule_gemm(func: tirx.PrimFunc, gemm: Gemm, tile: GemmTile) -> s_tir.Schedule | tirx.PrimFunc:
    """Schedule a product with one tile size.

    Raises
    ------
    tvm.s_tir.schedule.ScheduleError
        What surrounds the product cannot be inlined.
    """
    sch = new_schedule(func)
    normal = normalise(sch, (tile.i, tile.j, tile.k))
    main = normal.block
    batch, i, j, k = sch.get_loops(main)
    bi, ti, ii = sch.split(i, [None, tile.i // tile.mi, tile.mi])
    bj, tj, jj = sch.split(j, [None, tile.j // tile.mj, tile.mj])
    ko, ki = sch.split(k, [None, tile.k])
    outer, inner = (tj, ti) if gemm.fast_i else (ti, tj)
    sch.reorder(batch, bi, bj, outer, inner, ko, ki, ii, jj)
    sch.bind(sch.fuse(batch, bi, bj), "blockIdx.x")
    thread = sch.fuse(outer, inner)
    sch.bind(thread, "threadIdx.x")
    # nvcc unrolls these loops; TVM would write thousands of lines.
    sch.annotate(thread, "pragma_unroll_explicit", False)
    for loop in (ki, ii, jj):
        sch.unroll(loop)

    write_back = sch.cache_write(main, 0, "local")
    sch.reverse_compute_at(write_back, thread, preserve_unit_loops=True)
    for loop in sch.get_loops(write_back)[-2:]:
        sch.unroll(loop)
    for index in (0, 1):
        shared = sch.cache_read(main, index, "shared")
        sch.transform_layout(shared, ("write", 0), lambda s, x, k: (s, k, x))
        sch.compute_at(shared, ko, preserve_unit_loops=True)
        _load_tile(sch, shared, normal.spatial_fast[index], tile.threads)
        sch.storage_align(shared, 0, axis=1, factor=8, offset=4)
        auto_inline_producers(sch, shared)
    auto_inline_consumer_chain(sch, write_back)
    init = sch.decompose_reduction(main, ko)
    for loop in sch.get_loops(init)[-2:]:
        sch.unroll(loop)
    return guard_columns(sch, write_back, gemm, tile.j)


def _load_tile(sch: s_tir.Schedule, block: SBlockRV, spatial_fast: bool, threads: int) -> None:
    """Copy a tile with all threads: consecutive threads read consecutive elements."""
    x, k = sch.get_loops(block)[-2:]
    loops: list[LoopRV] = [k, x] if spatial_fast else [x, k]
    sch.reorder(*loops)
    serial, thread = sch.split(sch.fuse(*loops), [None, threads])
    sch.bind(thread, "threadIdx.x")
    if int(sch.get(serial).extent) <= MAX_UNROLLED:
        sch.unroll(serial)


GEMM_RULE = CudaRule("gemm", find_gemm, gemm_tiles, GemmTile, gemm_cost, schedule_gemm)
