"""CUDA tilings of convolutions and matrix products: C[I, J] += A[I, K] * B[J, K] in shared memory and registers.

A convolution is the product of its unfolded image (I: pixels, K: input channels and window) and its weights
(J: output channels). The unfolding is an index map, inlined where A is copied to shared memory.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.ir import Range, TensorRegion
from tvm.s_tir.dlight.gpu.matmul import auto_inline_consumer_chain, auto_inline_producers, get_index_map
from tvm.s_tir.schedule import LoopRV, SBlockRV

from ..device import DeviceSpec
from ..ir import ITEM_BYTES
from .anchor import REDUCTION, blocks_of, is_reduction, outputs_of
from .cuda_cost import Cost
from .cuda_measure import MAX_SHARED, MAX_THREADS
from .cuda_rule import CudaRule, start
from .tiling import Function

SIDES = (8, 16, 32, 64, 128)
"""Rows and columns of a tile: multiples of a memory transaction of 32 bytes."""

DEPTHS = (8, 16, 32, 64)

MICROS = ((1, 1), (2, 2), (2, 4), (4, 2), (4, 4), (4, 8), (8, 4), (8, 8))
"""What one thread makes: its results stay in registers."""

WASTE = 2.0
"""Padded work over useful work, at most, wherever a smaller tile wastes less."""


@dataclass(frozen=True, slots=True)
class GemmTile:
    """A block makes `i` x `j` outputs, a thread `mi` x `mj`, in steps of `k`."""

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


@dataclass(frozen=True, slots=True)
class Gemm:
    """Extents of the product that a function computes, bytes of an element.

    Parameters
    ----------
    batch, i, j, k : int
    fast_i : bool
        Consecutive outputs differ in I.
    itemsize : int
    """

    batch: int
    i: int
    j: int
    k: int
    fast_i: bool
    itemsize: int


def find_gemm(function: Function) -> Gemm | None:
    """Return the product's extents, or None where the function is no convolution or matrix product."""
    sch = start(function.func)
    block = _product(sch)
    if block is None:
        return None
    stmt = sch.get(block)
    a, b = (set(_variables(stmt.reads[n].region)) for n in (0, 1))
    extents = {"S": 1, "I": 1, "J": 1, "K": 1}
    for axis in stmt.iter_vars:
        if axis.iter_type == REDUCTION:
            kind = "K"
        else:
            kind = "S" if axis.var in a and axis.var in b else "I" if axis.var in a else "J"
        extents[kind] *= int(axis.dom.extent)
    fast_i = bool(fastest_axes(stmt, stmt.writes[0]) & a)
    itemsize = ITEM_BYTES[str(stmt.reads[0].source.dtype)]
    return Gemm(extents["S"], extents["I"], extents["J"], extents["K"], fast_i, itemsize)


def gemm_tiles(gemm: Gemm, device: DeviceSpec) -> Iterator[GemmTile]:
    """All aligned tiles that fit an rTask and do not waste more than they make."""
    for i, j, k, (mi, mj) in itertools.product(SIDES, SIDES, DEPTHS, MICROS):
        tile = GemmTile(i, j, k, mi, mj)
        if tile.threads % device.warp or not device.warp <= tile.threads <= MAX_THREADS:
            continue
        wasted = _padded(gemm.i, i) * _padded(gemm.j, j) > WASTE * _padded(gemm.i, SIDES[0]) * _padded(gemm.j, SIDES[0])
        if not wasted and tile.shared_bytes <= MAX_SHARED and (k <= 2 * gemm.k or k == DEPTHS[0]):
            yield tile


def gemm_cost(gemm: Gemm, tile: GemmTile) -> Cost:
    """What an rTask of a product does."""
    depth = _padded(gemm.k, tile.k)
    loads = tile.threads * (tile.mi + tile.mj) * depth
    return Cost(
        num_rtasks=gemm.batch * -(-gemm.i // tile.i) * -(-gemm.j // tile.j),
        threads=tile.threads,
        flops=2.0 * tile.i * tile.j * depth,
        nbytes=gemm.itemsize * ((tile.i + tile.j) * depth + tile.i * tile.j),
        shared_bytes=gemm.itemsize * loads / 2,  # of two operands a warp's threads share about one
        steps=depth // tile.k,
        outputs=tile.mi * tile.mj,
    )


def _padded(extent: int, tile: int) -> int:
    return -(-extent // tile) * tile


def schedule_gemm(func: tirx.PrimFunc, gemm: Gemm, tile: GemmTile) -> s_tir.Schedule:
    """Schedule a product with one tile size.

    Raises
    ------
    tvm.s_tir.schedule.ScheduleError
        Something around the product cannot be inlined.
    """
    sch = start(func)
    main = _product(sch)
    stmt = sch.get(main)
    spatial = {axis.var for axis in stmt.iter_vars if axis.iter_type != REDUCTION}
    spatial_fast = [bool(fastest_axes(stmt, read) & spatial) for read in stmt.reads]
    operands = [sch.reindex(main, ("read", n)) for n in (0, 1)]
    result = sch.reindex(main, ("write", 0))
    main_map, *operand_maps, result_map = get_index_map(sch.get(main))
    for operand, index_map in zip(operands, operand_maps, strict=True):
        sch.transform_layout(operand, ("write", 0), index_map)
    sch.transform_layout(result, ("read", 0), result_map)
    sch.transform_block_layout(main, main_map)
    sch.pad_einsum(main, [1, tile.i, tile.j, tile.k])

    batch, i, j, k = sch.get_loops(main)
    bi, ti, ii = sch.split(i, [None, tile.i // tile.mi, tile.mi])
    bj, tj, jj = sch.split(j, [None, tile.j // tile.mj, tile.mj])
    ko, ki = sch.split(k, [None, tile.k])
    outer, inner = (tj, ti) if gemm.fast_i else (ti, tj)
    sch.reorder(batch, bi, bj, outer, inner, ko, ki, ii, jj)
    sch.bind(sch.fuse(batch, bi, bj), "blockIdx.x")
    thread = sch.fuse(outer, inner)
    sch.bind(thread, "threadIdx.x")
    # nvcc unrolls these loops; unrolled by TVM, they would be thousands of lines.
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
        _fetch(sch, shared, spatial_fast[index], tile.threads)
        sch.storage_align(shared, 0, axis=1, factor=8, offset=4)
        auto_inline_producers(sch, shared)
    auto_inline_consumer_chain(sch, write_back)
    init = sch.decompose_reduction(main, ko)
    for loop in sch.get_loops(init)[-2:]:
        sch.unroll(loop)
    return sch


def _fetch(sch: s_tir.Schedule, block: SBlockRV, spatial_fast: bool, threads: int) -> None:
    """Copy a tile together: consecutive threads read what lies side by side in memory."""
    x, k = sch.get_loops(block)[-2:]
    loops: list[LoopRV] = [k, x] if spatial_fast else [x, k]
    sch.reorder(*loops)
    many, thread = sch.split(sch.fuse(*loops), [None, threads])
    sch.bind(thread, "threadIdx.x")
    sch.unroll(many)


def _product(sch: s_tir.Schedule) -> SBlockRV | None:
    """The only reduction of a function with one output, if it is a sum of products of two tensors."""
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or len(outputs_of(sch)) != 1:
        return None
    store = sch.get(found[0]).body
    value = store.value if isinstance(store, tirx.BufferStore) else None
    if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
        return None
    return found[0] if get_index_map(sch.get(found[0])) is not None else None


def _variables(region: Sequence[Range]) -> list[tirx.Var]:
    return [v for r in region for v in tirx.analysis.undefined_vars(r.min)]


def fastest_axes(block: s_tir.SBlock, access: TensorRegion) -> set[tirx.Var]:
    """The axes whose next value is the nearest in memory: those in the last index that is not constant."""
    moving = {axis.var for axis in block.iter_vars if int(axis.dom.extent) > 1}
    for index in reversed(access.region):
        found = moving.intersection(_variables([index]))
        if found:
            return found
    return set()


GEMM_RULE = CudaRule("gemm", find_gemm, gemm_tiles, GemmTile, gemm_cost, schedule_gemm)
