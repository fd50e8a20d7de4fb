"""CUDA tilings of half-precision products on tensor cores, 16 x 16 x 16 at a time.

Both operands are copied to shared memory. Each warp loads fragments from there, multiplies them, and stores its
results to shared memory. The epilogue reads them there and writes the output. The accumulators have the type of the
function's sum.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.s_tir.dlight.gpu.matmul import auto_inline_consumer_chain, auto_inline_producers
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ...analysis.blocks import new_schedule
from ...tiling import Function
from ..cost import Cost
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import CudaRule
from ..tensor_intrinsics import import_tensor_intrinsics
from .problem import Gemm, find_gemm, guard_columns, normalise, padded

FRAGMENT = 16
"""Extents in I, J and K of one matrix instruction."""

PAD = 8
"""Padding elements after each row of shared memory, so that the rows of a fragment are in different banks."""

WARP, VECTOR = 32, 4

RESULT_SCOPE = "shared.dyn"
"""Not the operands' scope: TVM would reuse their memory for the results, and then reject the other element type."""

MAX_PADDED_WORK = 4.0
"""Padded work at most, relative to useful work: tensor cores are eight times as fast."""


@dataclass(frozen=True, slots=True)
class WmmaTile:
    """A block computes `i` x `j` outputs in steps of `k`, a warp `wi` x `wj` of them."""

    i: int
    j: int
    k: int
    wi: int
    wj: int

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return (self.i // self.wi) * (self.j // self.wj)

    def shared_bytes(self, result: str) -> int:
        """Tiles of both operands and of the result, rows padded."""
        operands = 2 * (self.i + self.j) * (self.k + PAD)
        return operands + ITEM_BYTES[result] * self.i * (self.j + PAD)


def find_wmma(function: Function) -> Gemm | None:
    """Describe a product whose operands are half precision, on a device with tensor cores; None for others."""
    gemm = find_gemm(function)
    wide = gemm is not None and gemm.dtypes[2] in ("float16", "float32")
    if gemm is None or gemm.dtypes[:2] != ("float16", "float16") or not wide or function.device.arch < "sm_70":
        return None
    return gemm


def wmma_tiles(gemm: Gemm, device: DeviceSpec) -> Iterator[WmmaTile]:
    """All tiles of full fragments that fit an rTask, without those that pad too much."""
    sides, parts = (16, 32, 64, 128), (16, 32, 64)
    useful = gemm.i * gemm.j
    for i, j, k, wi, wj in itertools.product(sides, sides, (16, 32, 64), parts, parts):
        if i % wi or j % wj or wi * wj > 32 * 64:
            continue
        tile = WmmaTile(i, j, k, wi, wj)
        fits = tile.warps * WARP <= MAX_THREADS and tile.shared_bytes(gemm.dtypes[2]) <= MAX_SHARED
        too_padded = padded(gemm.i, i) * padded(gemm.j, j) > MAX_PADDED_WORK * useful and (i, j) != (FRAGMENT, FRAGMENT)
        if fits and not too_padded and (k == FRAGMENT or k < 2 * gemm.k):
            yield tile


def wmma_cost(gemm: Gemm, tile: WmmaTile) -> Cost:
    """The work of an rTask of a product."""
    depth = padded(gemm.k, tile.k)
    fragments = tile.warps * (tile.wi + tile.wj) * depth
    result = ITEM_BYTES[gemm.dtypes[2]] * tile.i * tile.j
    return Cost(
        num_rtasks=gemm.batch * -(-gemm.i // tile.i) * -(-gemm.j // tile.j),
        threads=tile.warps * WARP,
        flops=2.0 * tile.i * tile.j * depth,
        nbytes=2 * (tile.i + tile.j) * depth + result,
        shared_bytes=2 * fragments + 2 * result,
        steps=depth // tile.k + 1,
        tensor_cores=True,
    )


def schedule_wmma(func: tirx.PrimFunc, gemm: Gemm, tile: WmmaTile) -> s_tir.Schedule | tirx.PrimFunc:
    """Schedule a half-precision product with one tile size.

    Raises
    ------
    tvm.s_tir.schedule.ScheduleError
        What surrounds the product cannot be inlined.
    """
    intrinsics = _intrinsics(gemm.dtypes[2])
    sch = new_schedule(func)
    normal = normalise(sch, (tile.i, tile.j, tile.k))
    inner = normal.block
    batch, i, j, k = sch.get_loops(inner)
    (i, ii), (j, jj), (k, kk) = (sch.split(loop, [None, FRAGMENT]) for loop in (i, j, k))
    sch.reorder(i, j, k, ii, jj, kk)
    outer = sch.blockize(ii)
    warp, ko, ki = _tile_loops(sch, (batch, i, j, k), tile)

    for index in (0, 1):
        shared = sch.cache_read(outer, index, "shared")
        sch.compute_at(shared, ko, preserve_unit_loops=True)
        _load_tile(sch, shared, normal.spatial_fast[index], tile)
        auto_inline_producers(sch, shared)
    fragments = [sch.cache_read(outer, index, f"wmma.matrix_{'ab'[index]}") for index in (0, 1)]
    for fragment in fragments:
        sch.compute_at(fragment, ki, preserve_unit_loops=True)
    written = sch.cache_write(outer, 0, RESULT_SCOPE)
    stored = sch.cache_write(outer, 0, "wmma.accumulator")
    sch.storage_align(stored, 0, axis=-2, factor=FRAGMENT, offset=PAD)
    for block in (stored, written):
        sch.reverse_compute_at(block, warp, preserve_unit_loops=True)
    init = sch.decompose_reduction(outer, ko)

    for fragment, name in zip((*fragments, stored), ("load_a", "load_b", "store"), strict=True):
        sch.tensorize(_fragments(sch, fragment), intrinsics[name])
    (init_inner,) = sch.get_child_blocks(init)
    sch.tensorize(sch.get_loops(init_inner)[-2], intrinsics["init"])
    sch.tensorize(sch.get_loops(inner)[-3], intrinsics["compute"])

    auto_inline_consumer_chain(sch, written)
    row, column = sch.get_loops(written)[-2:]
    nest = (column, row) if gemm.fast_i else (row, column)
    sch.reorder(*nest)
    _, thread = sch.split(sch.fuse(*nest), [None, WARP])
    sch.bind(thread, "threadIdx.x")
    return guard_columns(sch, written, gemm, tile.j)


def _intrinsics(result: str) -> dict[str, str]:
    """TVM's names of the instructions; B is transposed."""
    import_tensor_intrinsics()
    from tvm.s_tir.tensor_intrin.cuda import get_wmma_intrin_group

    return dict(get_wmma_intrin_group("shared", RESULT_SCOPE, "float16", result, True))


def _tile_loops(
    sch: s_tir.Schedule, loops: tuple[LoopRV, LoopRV, LoopRV, LoopRV], tile: WmmaTile
) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Split and bind the loops over fragments; return the loops over warps, over steps of K, and within a step."""
    batch, i, j, k = loops
    bi, ti, mi = sch.split(i, [None, tile.i // tile.wi, tile.wi // FRAGMENT])
    bj, tj, mj = sch.split(j, [None, tile.j // tile.wj, tile.wj // FRAGMENT])
    ko, ki = sch.split(k, [None, tile.k // FRAGMENT])
    sch.reorder(batch, bi, bj, ti, tj, ko, ki, mi, mj)
    sch.bind(sch.fuse(batch, bi, bj), "blockIdx.x")
    warp = sch.fuse(ti, tj)
    sch.bind(warp, "threadIdx.y")
    for loop in (ki, mi, mj):
        sch.unroll(loop)
    return warp, ko, ki


def _load_tile(sch: s_tir.Schedule, block: SBlockRV, spatial_fast: bool, tile: WmmaTile) -> None:
    """Copy a tile with all threads: consecutive threads read consecutive elements."""
    sch.storage_align(block, 0, axis=-2, factor=FRAGMENT, offset=PAD)
    x, k = sch.get_loops(block)[-2:]
    if spatial_fast:
        sch.reorder(k, x)
        _, warp, thread = sch.split(sch.fuse(k, x), [None, tile.warps, WARP])
    else:
        _, warp, thread, vector = sch.split(sch.fuse(x, k), [None, tile.warps, WARP, VECTOR])
        sch.vectorize(vector)
    sch.bind(thread, "threadIdx.x")
    sch.bind(warp, "threadIdx.y")


def _fragments(sch: s_tir.Schedule, block: SBlockRV) -> LoopRV:
    """Split a copy into fragments, unrolled; return the outer loop of a fragment."""
    x, y = sch.get_loops(block)[-2:]
    x, xx = sch.split(x, [None, FRAGMENT])
    y, yy = sch.split(y, [None, FRAGMENT])
    sch.reorder(x, y, xx, yy)
    for loop in (x, y):
        sch.unroll(loop)
    return xx


WMMA_RULE = CudaRule("wmma", find_wmma, wmma_tiles, WmmaTile, wmma_cost, schedule_wmma)
