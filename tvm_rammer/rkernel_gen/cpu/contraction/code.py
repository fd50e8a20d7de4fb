"""The schedule of a convolution or matrix product: vectors of output channels, registers of pixels."""

from dataclasses import replace

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ...analysis.anchor import Anchor, find_anchor
from ...analysis.blocks import (
    SPATIAL,
    blocks_of,
    compute_where_made,
    has_branch,
    is_reduction,
    new_schedule,
    outputs_of,
    rewritten_schedule,
)
from ...analysis.variables import uses
from .cover import Cover, covered
from .dot import data_type, dot_intrinsic
from .pack import index_map_of
from .tile import ContractionTile, covers_of, outer_axes, row_axis_of

LAYOUT_REWRITE = "meta_schedule.layout_rewrite_preproc"
"""TVM's annotation of a block that packs a constant."""


def contraction_schedule(
    func: tirx.PrimFunc, tile: ContractionTile, *, pack: bool, inside: bool = False, dot: int = 1, ahead: bool = True
) -> s_tir.Schedule:
    """Schedule the function of a tiling, as `main` of a module; its outermost loop is parallel.

    Parameters
    ----------
    pack : bool
        Whether the weight is packed.
    inside : bool
        Whether a block of the function packs it, which MetaSchedule moves out of the function later. Otherwise the
        parameter has the packed layout.
    dot : int
        Products of bytes that one instruction adds to each element of a vector (`dot.py`), of a packed matrix.
    ahead : bool
        Whether data that are widened for it are so once an rTask, rather than for each register tile.

    Raises
    ------
    ScheduleError
        TVM cannot apply the tiling.
    """
    sch = new_schedule(func)
    anchor = find_anchor(sch)
    assert anchor is not None  # the caller found it in the same function
    covers = covers_of(sch.get(anchor.block), anchor, tile)
    if covers:
        sch, anchor = _covered(sch, anchor, covers, packed=pack)
    block = anchor.block
    weight = sch.get(block).reads[anchor.weight].source
    padding = _inline_producers(sch, block)
    place = _place_of(weight, sch.get(block))
    row_axis, outer = row_axis_of(sch.get(block), anchor), outer_axes(sch.get(block), anchor)

    if pack:
        if inside:
            copied = sch.cache_read(block, place, "global")
            sch.annotate(copied, LAYOUT_REWRITE, True)
        ndim = len(sch.get(block).reads[place].region)
        sch.transform_layout(block, ("read", place), index_map_of(anchor.vector_dim, tile.simd, ndim, dot))
    widened = None
    if dot > 1 and data_type(dot) != "uint8":
        if len(sch.get(block).reads) != 2:
            raise ScheduleError("what is widened is made of several buffers")
        widened = sch.cache_read(block, 1 - place, "global")
        sch.unsafe_set_dtype(widened, 0, data_type(dot))
        if ahead:
            padding.append(widened)
    # Without an epilogue a copy takes its place, so that the product is accumulated in registers either way.
    epilogue = _inline_epilogue(sch, block) or sch.cache_write(block, 0, "local")
    write_dim = _write_dim(sch.get(block), anchor.vector)
    covered_channels = None
    if anchor.vector in covers:
        covered_channels = _axis_that_reads(sch.get(epilogue), sch.get(block).writes[0].source, write_dim)
    ndim = len(sch.get(block).writes[0].region)
    sch.transform_layout(block, ("write", 0), _split_inner(write_dim, tile.simd, ndim))

    loops = sch.get_loops(block)
    reduction = loops[sum(axis.iter_type == SPATIAL for axis in sch.get(block).iter_vars) :]
    channel_part, channel, vector, element = sch.split(
        loops[anchor.vector], [tile.channel_parts, None, tile.vectors, tile.simd]
    )
    group = []
    if dot > 1:
        step, one = sch.split(reduction[-1], [None, dot])
        reduction, group = [*reduction[:-1], step], [one]
    pixel_loops, row_loops = [], []
    if anchor.row >= 0:
        pixel_loops = sch.split(loops[anchor.row], [None, tile.pixels])
    if row_axis >= 0:
        row_loops = sch.split(loops[row_axis], [tile.row_parts, None])
    elif pixel_loops:
        row_part, pixel_loops[0] = sch.split(pixel_loops[0], [tile.row_parts, None])
        row_loops = [row_part]
    batch = [loops[i] for i in outer if i != row_axis]
    sch.reorder(
        *batch, channel_part, *row_loops[:1],
        channel, *row_loops[1:], *pixel_loops[:1],
        *reduction, *pixel_loops[1:], vector, element, *group,
    )  # fmt: skip
    rtask = sch.fuse(*batch, channel_part, *row_loops[:1])
    sch.parallel(rtask)
    register_tile = (*pixel_loops[:1], *row_loops[1:], channel)[0]
    compute_where_made(sch, epilogue, register_tile)
    if covered_channels is not None:
        _store_vectors(sch, epilogue, covered_channels, tile.simd)
    for pad in padding:
        sch.compute_at(pad, rtask)
    if widened is not None and not ahead:
        sch.compute_at(widened, register_tile)
    sch.set_scope(block, 0, "local")
    for loop in (*pixel_loops[1:], vector):
        sch.unroll(loop)
    if dot > 1:
        init = sch.decompose_reduction(block, reduction[0])
        sch.vectorize(sch.get_loops(init)[-1])
        sch.tensorize(element, dot_intrinsic(dot, tile.simd))
        return sch
    sch.vectorize(element)
    if reduction:
        sch.decompose_reduction(block, reduction[0])
    return sch


def _place_of(buffer: tirx.Var, block: s_tir.SBlock) -> int:
    """Where a buffer is among those that a block reads: what was inlined into it may read several."""
    return next(i for i, region in enumerate(block.reads) if region.source.same_as(buffer))


def _covered(
    sch: s_tir.Schedule, anchor: Anchor, covers: dict[int, Cover], *, packed: bool
) -> tuple[s_tir.Schedule, Anchor]:
    """A schedule of the function whose tiles cover these axes, and where its sum is in it."""
    if not sch.get_consumers(anchor.block):
        sch.cache_write(anchor.block, 0, "local")  # results of tiles are not results of the function
    block = sch.get(anchor.block)
    weight = (block.reads[anchor.weight].source, anchor.vector_dim, anchor.vector) if packed else None
    sch = rewritten_schedule(covered(sch.mod["main"], block, covers, weight))
    return sch, replace(anchor, block=sch.get_sblock(block.name_hint))


def _axis_that_reads(block: s_tir.SBlock, buffer: tirx.Var, dim: int) -> int:
    """The axis of a block that is its index of a buffer's dimension."""
    (index,) = {region.region[dim].min for region in block.reads if region.source.same_as(buffer)}
    return next(i for i, axis in enumerate(block.iter_vars) if axis.var.same_as(index))


def _store_vectors(sch: s_tir.Schedule, epilogue: SBlockRV, axis: int, simd: int) -> None:
    """Split the loop over an axis into vectors, each of which has a place of its own."""
    realizes: list[s_tir.SBlockRealize] = []
    loops = sch.get_loops(epilogue)
    tvm_ffi.structural_walk(sch.get(loops[-1]).body, [(s_tir.SBlockRealize, realizes.append)], order="pre")
    value = realizes[0].iter_values[axis]
    inner = next(loop for loop in reversed(loops) if uses(value, sch.get(loop).loop_var))
    _, elements = sch.split(inner, [None, simd])
    if inner.same_as(loops[-1]):
        sch.vectorize(elements)


def _inline_producers(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """Inline blocks that only rearrange the data; return the padding, which each rTask computes once."""
    padding = []
    for producer in list(sch.get_producers(block)):
        if has_branch(sch, producer):
            for before in list(sch.get_producers(producer)):
                sch.compute_inline(before)
            padding.append(producer)
        else:
            sch.compute_inline(producer)
    return padding


def _inline_epilogue(sch: s_tir.Schedule, block: SBlockRV) -> SBlockRV | None:
    """Inline all blocks that use the block's results, or are used with them, into the last block.

    Returns
    -------
    SBlockRV or None
        The last block; None where `block` is the last one itself.
    """
    last = outputs_of(sch)[0]
    for other in blocks_of(sch):
        if sch.get_consumers(other) and not is_reduction(sch, other) and not _feeds(sch, other, block):
            sch.compute_inline(other)
    return None if is_reduction(sch, last) else last


def _feeds(sch: s_tir.Schedule, producer: SBlockRV, block: SBlockRV) -> bool:
    return any(sch.get(consumer).same_as(sch.get(block)) for consumer in sch.get_consumers(producer))


def _write_dim(block: s_tir.SBlock, axis: int) -> int:
    """The dimension of the output that an axis indexes."""
    var = block.iter_vars[axis].var
    region = block.writes[0].region
    return next(d for d, r in enumerate(region) if r.min.same_as(var))


def _split_inner(dim: int, simd: int, ndim: int) -> tirx.IndexMap:
    """Split dimension `dim` into vectors, which stay in its place, and their elements, which come last."""

    def index_map(*index: Expr) -> tuple[Expr, ...]:
        return (*index[:dim], index[dim] // simd, *index[dim + 1 :], index[dim] % simd)

    return tirx.IndexMap.from_func(index_map, ndim=ndim)
