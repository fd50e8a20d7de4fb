"""Convolutions and matrix products as one problem: C[S, I, J] += A[S, I, K] * B[S, J, K].

A convolution is the product of its im2col matrix (I: pixels, K: input channels and window) and its weights (J: output
channels; S: groups). The im2col matrix is an index map, inlined where A is copied to shared memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import s_tir, tirx
from tvm.ir import Range, TensorRegion
from tvm.s_tir.dlight.gpu.matmul import get_index_map
from tvm.s_tir.schedule import SBlockRV

from ...analysis.anchor import factors_of
from ...analysis.blocks import REDUCTION, blocks_of, is_reduction, new_schedule, one_result
from ...tiling import Function
from ..groups import separate_groups

MIN_SIDE = 2
"""Least extent of I and J: a matrix times a vector has no reuse that a tile could exploit."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """The product that a function computes.

    Parameters
    ----------
    batch, i, j, k : int
        Extents.
    grouped : bool
        Whether the batch is the groups of a convolution, a part of the output's channels.
    fast_i : bool
        Whether consecutive outputs differ in I.
    dtypes : tuple of str
        Element types of A, B and C.
    """

    batch: int
    i: int
    j: int
    k: int
    grouped: bool
    fast_i: bool
    dtypes: tuple[str, ...]


def find_gemm(function: Function) -> Gemm | None:
    """Return the product's extents, or None where the function is no convolution or matrix product."""
    sch = new_schedule(function.func)
    found = product_block(sch)
    if found is None:
        return None
    block, grouped = found
    stmt = sch.get(block)
    a, b = (set(_variables(stmt.reads[n].region)) for n in (0, 1))
    extents = {"S": 1, "I": 1, "J": 1, "K": 1}
    for axis in stmt.iter_vars:
        if axis.iter_type == REDUCTION:
            kind = "K"
        else:
            kind = "S" if axis.var in a and axis.var in b else "I" if axis.var in a else "J"
        extents[kind] *= int(axis.dom.extent)
    if min(extents["I"], extents["J"]) < MIN_SIDE:
        return None
    fast_i = bool(fastest_axes(stmt, stmt.writes[0]) & a)
    dtypes = tuple(str(region.source.dtype) for region in (*stmt.reads, *stmt.writes))
    return Gemm(extents["S"], extents["I"], extents["J"], extents["K"], grouped, fast_i, dtypes)


def product_block(sch: s_tir.Schedule) -> tuple[SBlockRV, bool] | None:
    """The reduction of a function with one output, if it multiplies two matrices; and whether it has groups."""
    found = summed_products(sch)
    return found if found is not None and get_index_map(sch.get(found[0])) is not None else None


def summed_products(sch: s_tir.Schedule) -> tuple[SBlockRV, bool] | None:
    """The same, if it sums products of two tensors: one of them may be a vector."""
    found = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(found) != 1 or not one_result(sch):
        return None
    grouped = separate_groups(sch, found[0])
    if factors_of(sch.get(found[0])) is None or len(sch.get(found[0]).reads) != 2:
        return None
    return found[0], grouped


def _variables(region: Sequence[Range]) -> list[tirx.Var]:
    return [v for r in region for v in tirx.analysis.undefined_vars(r.min)]


def fastest_axes(block: s_tir.SBlock, access: TensorRegion) -> set[tirx.Var]:
    """The axes with the smallest stride: those in the last index that is not constant."""
    moving = {axis.var for axis in block.iter_vars if int(axis.dom.extent) > 1}
    for index in reversed(access.region):
        found = moving.intersection(_variables([index]))
        if found:
            return found
    return set()


def padded(extent: int, tile: int) -> int:
    """An extent rounded up to a multiple of a tile's."""
    return -(-extent // tile) * tile
