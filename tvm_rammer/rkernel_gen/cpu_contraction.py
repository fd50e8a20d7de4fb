"""CPU tilings of convolutions and matrix products: output channels in vectors, pixels in registers.

One rTask computes a block of channels and rows. Inside, a register tile holds `pixels x vectors`
accumulators: each step of the reduction loads `vectors` vectors of weights and broadcasts `pixels`
values. Constant weights are packed so that those loads are contiguous. This is the outer-product
micro-kernel of Goto and van de Geijn (TOMS 2008) with the roles of A and B taken by pixels and weights.
"""

import itertools
import math
from dataclasses import dataclass

import tvm
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ..device import DeviceSpec
from ..ir import ITEM_BYTES, RKernel
from ..kernel import Pack, ScheduledKernel
from . import cpu_cost
from .anchor import Anchor, blocks_of, find_anchor, has_branch, is_reduction, outputs_of

REGISTERS = 28
"""Vector registers that the accumulators may take, of 32 (AVX-512); half of that on AVX2, which has 16."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tiling: how channels and rows are cut into rTasks, and the register tile inside.

    Parameters
    ----------
    lanes : int
        Elements of a vector.
    vectors, pixels : int
        Extents of the register tile.
    channel_parts, row_parts : int
        Into how many rTasks the channels and the rows are cut.
    """

    lanes: int
    vectors: int
    pixels: int
    channel_parts: int
    row_parts: int


def contraction_kernels(
    name: str, func: tirx.PrimFunc, device: DeviceSpec, constants: frozenset[int]
) -> tuple[ScheduledKernel, ...]:
    """Make kernels of a convolution or a matrix product, coarse to fine.

    Parameters
    ----------
    name : str
        The function's name.
    func : tirx.PrimFunc
        Fused and not scheduled.
    device : DeviceSpec
    constants : frozenset of int
        The parameters that are constants wherever the function is called: these may be packed.

    Returns
    -------
    tuple of ScheduledKernel
        Empty where the function is not of this form.
    """
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    anchor = find_anchor(sch)
    if anchor is None or len(outputs_of(sch)) != 1:
        return ()
    block = sch.get(anchor.block)
    weight = block.reads[anchor.weight].source
    param = next((i for i, p in enumerate(func.params) if p.same_as(weight)), None)
    contiguous = anchor.vector_dim == len(weight.shape) - 1
    if param is None or not (contiguous or param in constants):
        return ()
    work = cpu_cost.Work.of(func)
    made = []
    for tile in _tiles(block, anchor, device):
        try:
            scheduled = _apply(func, tile, pack=param in constants)
        except ScheduleError:
            continue
        rtasks = _batch(block, anchor) * tile.channel_parts * tile.row_parts
        time = cpu_cost.contraction_us(work, rtasks, tile.vectors * tile.pixels, tile.lanes, device)
        pack = {param: _pack(weight.shape, anchor.vector_dim, tile.lanes)} if param in constants else {}
        made.append(ScheduledKernel(RKernel(f"{name}_t{rtasks}", name, rtasks, time), scheduled, pack))
    return tuple(made)


def _extent(block: s_tir.SBlock, axis: int) -> int:
    return int(block.iter_vars[axis].dom.extent)


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _outer(block: s_tir.SBlock, anchor: Anchor) -> list[int]:
    """Spatial axes besides the vector's and the innermost row's; the last of them is cut into rTasks."""
    spatial = [i for i, axis in enumerate(block.iter_vars) if axis.iter_type == 0]
    return [i for i in spatial if i not in (anchor.vector, anchor.row)]


def _row_axis(block: s_tir.SBlock, anchor: Anchor) -> int:
    """The axis that is cut into `row_parts`: the last outer one; -1, and the pixels are, where there is none."""
    outer = [i for i in _outer(block, anchor) if _extent(block, i) > 1]
    return outer[-1] if outer else -1


def _batch(block: s_tir.SBlock, anchor: Anchor) -> int:
    row = _row_axis(block, anchor)
    return math.prod(_extent(block, i) for i in _outer(block, anchor) if i != row)


def _tiles(block: s_tir.SBlock, anchor: Anchor, device: DeviceSpec) -> list[Tile]:
    """Choose the best register tile, and cuts that give about 1, 4 and 16 rTasks a unit."""
    channels = _extent(block, anchor.vector)
    pixels = _extent(block, anchor.row) if anchor.row >= 0 else 1
    item = ITEM_BYTES[str(block.writes[0].source.dtype)]
    widest = max(1, device.vector_bytes // item)
    lanes = max(w for w in _divisors(widest) if channels % w == 0)
    budget = REGISTERS if device.vector_bytes >= 64 else REGISTERS // 2
    shapes = [
        (v, p)
        for v, p in itertools.product(_divisors(channels // lanes), _divisors(pixels))
        if v * p <= budget and v <= 8
    ]
    vectors, register_pixels = max(shapes, key=lambda s: (_intensity(*s), -s[0]))
    row_axis = _row_axis(block, anchor)
    rows = _extent(block, row_axis) if row_axis >= 0 else pixels // register_pixels
    batch = _batch(block, anchor)
    cuts = [
        (c, r)
        for c, r in itertools.product(_divisors(channels // lanes // vectors), _divisors(rows))
        if r <= 64 and c <= 256
    ]
    chosen = []
    for target in (device.units, 4 * device.units, 16 * device.units):
        # Near the target; then a multiple of the units, then whole weights (few channel parts) in each rTask.
        best = min(cuts, key=lambda c: (_distance(batch * c[0] * c[1], target, device.units), c[1] != 1, c[0]))
        if best not in chosen:
            chosen.append(best)
    for cut in sorted(cuts, key=math.prod):
        if len(chosen) < 2 and cut not in chosen:
            chosen.append(cut)
    return [Tile(lanes, vectors, register_pixels, c, r) for c, r in chosen]


def _intensity(vectors: int, pixels: int) -> float:
    """Multiply-adds a load, held back where too few accumulators hide the latency of the multiply-add."""
    return vectors * pixels / (vectors + pixels) * min(1.0, vectors * pixels / 8)


def _distance(rtasks: int, target: int, units: int) -> float:
    rounds = -(-rtasks // units)
    waste = rounds * units / rtasks
    return abs(math.log2(rtasks / target)) + 4 * math.log2(waste)


def _pack(shape: tuple[int, ...], dim: int, lanes: int) -> Pack:
    """Weights with the vector axis cut: [.., channel, ..] becomes [channel // lanes, .., channel % lanes]."""
    whole = tuple(int(s) for s in shape)
    split = (*whole[:dim], whole[dim] // lanes, lanes, *whole[dim + 1 :])
    rest = [a for a in range(len(split)) if a not in (dim, dim + 1)]
    return Pack(whole, split, (dim, *rest, dim + 1))


def _apply(func: tirx.PrimFunc, tile: Tile, *, pack: bool) -> tirx.PrimFunc:
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    anchor = find_anchor(sch)
    assert anchor is not None  # the caller found it in the same function
    block = anchor.block
    padding = _inline_producers(sch, block)
    row_axis, outer = _row_axis(sch.get(block), anchor), _outer(sch.get(block), anchor)

    if pack:
        ndim = len(sch.get(block).reads[anchor.weight].region)
        sch.transform_layout(block, ("read", anchor.weight), _split_to_ends(anchor.vector_dim, tile.lanes, ndim))
    # Without an epilogue a copy takes its place: the product goes into registers first either way.
    epilogue = _inline_epilogue(sch, block) or sch.cache_write(block, 0, "local")
    write_dim = _write_dim(sch.get(block), anchor.vector)
    ndim = len(sch.get(block).writes[0].region)
    sch.transform_layout(block, ("write", 0), _split_inner(write_dim, tile.lanes, ndim))

    loops = sch.get_loops(block)
    reduction = loops[sum(axis.iter_type == 0 for axis in sch.get(block).iter_vars) :]
    channel_part, channel, vector, lane = sch.split(
        loops[anchor.vector], [tile.channel_parts, None, tile.vectors, tile.lanes]
    )
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
        *reduction, *pixel_loops[1:], vector, lane,
    )  # fmt: skip
    rtask = sch.fuse(*batch, channel_part, *row_loops[:1])
    sch.parallel(rtask)
    sch.reverse_compute_at(epilogue, (*pixel_loops[:1], *row_loops[1:], channel)[0])
    for pad in padding:
        sch.compute_at(pad, rtask)
    sch.set_scope(block, 0, "local")
    for loop in (*pixel_loops[1:], vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    if reduction:
        sch.decompose_reduction(block, reduction[0])
    return sch.mod["main"]


def _inline_producers(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """Inline what only rearranges the data; return the padding, which is computed once an rTask."""
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
    """Inline every block after `block` into the last one, and return that; None where there is none."""
    last = outputs_of(sch)[0]
    for consumer in blocks_of(sch):
        if sch.get_consumers(consumer) and not is_reduction(sch, consumer) and _follows(sch, consumer, block):
            sch.compute_inline(consumer)
    return None if is_reduction(sch, last) else last


def _follows(sch: s_tir.Schedule, later: SBlockRV, block: SBlockRV) -> bool:
    """Whether `later` reads, directly or not, what `block` writes."""
    return any(is_reduction(sch, p) or _follows(sch, p, block) for p in sch.get_producers(later))


def _write_dim(block: s_tir.SBlock, axis: int) -> int:
    """The dimension of the output that an axis indexes."""
    var = block.iter_vars[axis].var
    region = block.writes[0].region
    return next(d for d, r in enumerate(region) if r.min.same_as(var))


def _split_to_ends(dim: int, lanes: int, ndim: int) -> tirx.IndexMap:
    """The index map of `_pack`."""

    def index_map(*index: Expr) -> tuple[Expr, ...]:
        return (index[dim] // lanes, *index[:dim], *index[dim + 1 :], index[dim] % lanes)

    return tirx.IndexMap.from_func(index_map, ndim=ndim)


def _split_inner(dim: int, lanes: int, ndim: int) -> tirx.IndexMap:
    """Leave dimension `dim` in place as blocks of `lanes`; the place within a block comes last."""

    def index_map(*index: Expr) -> tuple[Expr, ...]:
        return (*index[:dim], index[dim] // lanes, *index[dim + 1 :], index[dim] % lanes)

    return tirx.IndexMap.from_func(index_map, ndim=ndim)
