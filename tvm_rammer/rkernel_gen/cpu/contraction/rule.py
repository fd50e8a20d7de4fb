"""CPU tilings of convolutions and matrix products: output channels in vectors, pixels in registers.

An rTask computes a block of channels and rows. Its register tile has `pixels x vectors` accumulators: each step of the
reduction loads `vectors` vectors of weights and broadcasts `pixels` values. Constant weights are packed so that these
loads are contiguous. This is the outer-product micro-kernel of Goto and van de Geijn (TOMS 2008), with pixels as A and
weights as B. Where bytes are multiplied, one instruction adds up several products (`dot`).
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tvm import s_tir, tirx
from tvm.s_tir.schedule import ScheduleError

from ....ir import ITEM_BYTES
from ....kernel import ScheduledKernel
from ...analysis.anchor import Anchor, factors_of, find_anchor
from ...analysis.blocks import REDUCTION, has_branch, new_schedule, one_result
from ...analysis.work import Work, shape_of
from ...tiling import Function, Tiling, choices_of
from .. import cost
from ..space import MAX_RTASKS_PER_UNIT, divisors, find_tile, prune, scheduled_kernel
from .code import contraction_schedule
from .cover import can_cover
from .dot import has_dot
from .pack import pack_of
from .tile import ContractionTile, extent_of, outer_axes, row_axis_of

REGISTERS = 32
"""Vector registers with AVX-512, of which a register tile's accumulators take three in four; AVX2 has half as many."""
PAIR_REGISTERS = 2
"""Of them what pairs of bytes take beside accumulators and weights: the data, and their products."""
WIDE_SHARE = 2
"""Of a core's own cache, what an rTask's bytes may take that are widened ahead. Beyond that each register tile widens
its own, for each block of channels anew: 9 % slower to 8 % faster, measured.
"""
MAX_VECTORS = 8
"""Vectors of a register tile."""
MOST_COVERING = 4
"""Vectors of a register tile where vectors do not divide the channels."""
EVEN_PIXELS = range(4, 13)
"""Where some of these divide the pixels, there are good register tiles of them."""
COVERING_PIXELS = range(4, 6), range(6, 9), range(9, 13)
"""Elsewhere there is a register tile of each of these."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """A convolution or matrix product, as far as tilings depend on it.

    Parameters
    ----------
    weight : int
        Position of the weight among the function's parameters.
    vector_dim : int
        The weight's dimension of channels.
    channels, pixels, rows, batch : int
        Extents: of the vectors' axis, of the register tile's other axis, of the axis that is split into `row_parts`
        (0 where the pixels are), and of all others together, each element of which is one rTask or several.
    weights, terms : int
        Bytes of weights that are multiplied with a pixel; and how many products a result is the sum of.
    bytes_matrix : bool
        Whether the data are unsigned bytes, each followed by the next one that is multiplied, and the weights a matrix
        of signed ones.
    itemsize : int
        Bytes of an element.
    results : int
        Elements of the output.
    scattered : bool
        Whether the vectors' axis is not the last one of the output.
    cover_channels, cover_pixels : bool
        Whether tiles may cover channels, and pixels, that they do not divide (`cover.py`).
    """

    weight: int
    vector_dim: int
    channels: int
    pixels: int
    rows: int
    batch: int
    weights: int
    terms: int
    bytes_matrix: bool
    itemsize: int
    results: int
    scattered: bool
    cover_channels: bool
    cover_pixels: bool


@lru_cache(maxsize=64)
def _find_contraction(func: tirx.PrimFunc) -> Contraction | None:
    sch = new_schedule(func)
    anchor = find_anchor(sch)
    if anchor is None or not one_result(sch):
        return None
    block = sch.get(anchor.block)
    weight = block.reads[anchor.weight].source
    param = next((i for i, p in enumerate(func.params) if p.same_as(weight)), None)
    if param is None:
        return None
    row = row_axis_of(block, anchor)
    itemsize = ITEM_BYTES[str(block.writes[0].source.dtype)]
    channels = extent_of(block, anchor.vector)
    reduced = [i for i, axis in enumerate(block.iter_vars) if axis.iter_type == REDUCTION]
    terms = math.prod(extent_of(block, i) for i in reduced)
    return Contraction(
        weight=param,
        vector_dim=anchor.vector_dim,
        channels=channels,
        pixels=extent_of(block, anchor.row) if anchor.row >= 0 else 1,
        rows=extent_of(block, row) if row >= 0 else 0,
        batch=math.prod(extent_of(block, i) for i in outer_axes(block, anchor) if i != row),
        weights=channels * terms * ITEM_BYTES[str(weight.dtype)],
        terms=terms,
        bytes_matrix=len(reduced) == 1 and _multiplies_bytes(block, anchor, block.iter_vars[reduced[0]].var),
        itemsize=itemsize,
        results=math.prod(shape_of(block.writes[0].source)),
        scattered=not block.writes[0].region[-1].min.same_as(block.iter_vars[anchor.vector].var),
        cover_channels=_coverable(sch, anchor, anchor.vector),
        cover_pixels=anchor.row >= 0 and _coverable(sch, anchor, anchor.row),
    )


def _coverable(sch: s_tir.Schedule, anchor: Anchor, axis: int) -> bool:
    """Whether tiles may cover an axis. Padding is computed ahead of all of an rTask's tiles, from where they were."""
    if any(has_branch(sch, producer) for producer in sch.get_producers(anchor.block)):
        return False
    return not sch.get_consumers(anchor.block) or can_cover(sch.mod["main"], sch.get(anchor.block), axis)


def _multiplies_bytes(block: s_tir.SBlock, anchor: Anchor, term: tirx.Var) -> bool:
    """Whether it is `out[..] += int32(data[.., term]) * int32(matrix[..])`, of unsigned and of signed bytes."""
    factors = factors_of(block)
    weight = block.reads[anchor.weight].source
    if factors is None or not factors[1].source.same_as(weight):
        return False
    data, matrix = factors
    types = [str(buffer.dtype) for buffer in (data.source, matrix.source, block.writes[0].source)]
    return types == ["uint8", "int8", "int32"] and len(matrix.indices) == 2 and data.indices[-1].same_as(term)


@dataclass(frozen=True, slots=True)
class ContractionRule:
    """Register tiles of channels and pixels; the rTasks are blocks of channels and rows."""

    name: str = "contraction"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All register tiles that fit into the registers, with all splits into rTasks."""
        problem = _applicable(function)
        if problem is None:
            return ()
        return prune([_tiling(problem, function, tile) for tile in _tiles(problem, function)])

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Schedule one of them."""
        problem = _applicable(function)
        if problem is None:
            return None
        tile = find_tile(_tiles(problem, function), choices)
        if tile is None:
            return None
        pack, dot = problem.weight in function.constants, _dot(problem, function, tile.simd)
        try:
            ahead = _wide_bytes(problem, tile) <= WIDE_SHARE * function.device.unit_bytes
            sch = contraction_schedule(function.func, tile, pack=pack, dot=dot, ahead=ahead)
            plain = dot == 1 and not _covers(problem, tile)
            stock = contraction_schedule(function.func, tile, pack=True, inside=True) if pack and plain else sch
        except ScheduleError:
            return None
        weight = function.func.params[problem.weight]
        packs = {problem.weight: pack_of(shape_of(weight), problem.vector_dim, tile, dot)} if pack else {}
        # Stock TVM has no such instruction, and its schedules do not cover what their tiles do not divide.
        trace = stock.trace.simplified(False) if plain else None
        return scheduled_kernel(function, _tiling(problem, function, tile), sch.mod["main"], packs, trace)


def _applicable(function: Function) -> Contraction | None:
    """The contraction of a function whose weight can be read in vectors: packed, or without packing."""
    problem = _find_contraction(function.func)
    if problem is None:
        return None
    contiguous = problem.vector_dim == len(function.func.params[problem.weight].shape) - 1
    return problem if contiguous or problem.weight in function.constants else None


def _dot(problem: Contraction, function: Function, simd: int) -> int:
    """Products that one instruction adds to each element of a vector: 1, unless bytes can be packed for more."""
    if not problem.bytes_matrix or problem.weight not in function.constants:
        return 1
    fitting = (n for n in (4, 2) if n <= function.device.dot and problem.terms % n == 0 and has_dot(n, simd))
    return next(fitting, 1)


def _wide_bytes(problem: Contraction, tile: ContractionTile) -> float:
    """Of an rTask's data as numbers of 16 bits."""
    return 2.0 * problem.terms * problem.pixels * max(1, problem.rows) / tile.row_parts


def _tiling(problem: Contraction, function: Function, tile: ContractionTile) -> Tiling:
    rtasks = problem.batch * tile.channel_parts * tile.row_parts
    work, dot = Work.of(function.func), _dot(problem, function, tile.simd)
    all_data = max(0.0, work.nbytes - problem.weights - problem.results * problem.itemsize)
    covered = math.prod(tile.covered(problem.channels, problem.pixels)) / (problem.channels * problem.pixels)
    results = math.ceil(problem.results * covered)
    far = problem.scattered and all_data > cost.KEPT_SHARE * function.device.unit_bytes
    lines = all_data / cost.LINE_BYTES * problem.channels / (tile.simd * tile.vectors) if far else 0.0
    register_tile = cost.RegisterTile(tile.vectors, tile.pixels, tile.simd, results, problem.scattered, lines)
    flops = 2.0 * problem.results * problem.terms / dot if problem.bytes_matrix else work.flops
    work = replace(work, flops=flops * covered)
    rtask_us = cost.contraction_us(work, rtasks, register_tile, function.device)
    data = all_data / (problem.batch * tile.row_parts)
    refill_us = cost.refill_us(problem.weights / tile.channel_parts, data, register_tile, function.device)
    return Tiling("contraction", choices_of(tile), rtasks, rtask_us, refill_us)


def _tiles(problem: Contraction, function: Function) -> Iterator[ContractionTile]:
    device = function.device
    registers = REGISTERS if device.vector_bytes >= 64 else REGISTERS // 2
    max_accumulators = registers * 3 // 4
    for simd, vectors, pixels in itertools.chain(*(_register_tiles(problem, w) for w in _widths(problem, function))):
        if vectors > MAX_VECTORS or vectors * pixels > max_accumulators:
            continue
        dot = _dot(problem, function, simd)
        if dot == 2 and vectors * (pixels + 1) + PAIR_REGISTERS > registers:
            continue
        channels, rows = (-(-n // step) for n, step in ((problem.channels, simd * vectors), (problem.pixels, pixels)))
        for channel_parts, row_parts in itertools.product(divisors(channels), divisors(problem.rows or rows)):
            parts = channel_parts * row_parts
            if parts > 1 and problem.batch * parts > MAX_RTASKS_PER_UNIT * device.units:
                continue
            tile = ContractionTile(simd, vectors, pixels, channel_parts, row_parts)
            if _apart(problem, tile):
                yield tile


def _widths(problem: Contraction, function: Function) -> list[int]:
    """Elements of vectors to choose from."""
    widest = max(1, function.device.vector_bytes // problem.itemsize)
    fitting = [w for w in divisors(problem.channels) if w <= widest]
    # Vectors of any length do for floating point; sums of products of bytes are instructions.
    best = max(fitting, key=lambda w: (_dot(problem, function, w) > 1, w))
    if best == widest or problem.channels < widest or not problem.cover_channels:
        return [best]
    powers = [w for w in fitting if w.bit_count() == 1 and 2 * w >= widest]
    return [*powers, widest]


def _register_tiles(problem: Contraction, simd: int) -> Iterator[tuple[int, int, int]]:
    """Register tiles: elements of vectors, vectors, and pixels."""
    whole, rest = divmod(problem.channels, simd)
    vectors = range(1, min(MOST_COVERING, whole) + 1) if rest else divisors(whole)
    pixels = divisors(problem.pixels)
    if problem.cover_pixels and problem.pixels > EVEN_PIXELS.start and not any(n in EVEN_PIXELS for n in pixels):
        pixels = sorted({*pixels, *_covering(problem.pixels)})
    return itertools.product((simd,), vectors, pixels)


def _covering(pixels: int) -> list[int]:
    """Pixels of tiles that do not divide them: some of each size, those that compute least twice."""
    sizes = [[n for n in some if n <= pixels] for some in COVERING_PIXELS]
    return [min(some, key=lambda n: (-(-pixels // n) * n, -n)) for some in sizes if some]


def _covers(problem: Contraction, tile: ContractionTile) -> bool:
    """Whether register tiles cover channels or pixels that they do not divide."""
    return tile.covered(problem.channels, problem.pixels) != (problem.channels, problem.pixels)


def _apart(problem: Contraction, tile: ContractionTile) -> bool:
    """Whether no two rTasks compute the same: what tiles overlap that are moved back is the last rTask's."""
    channels, pixels = tile.covered(problem.channels, problem.pixels)
    row_parts = 1 if problem.rows else tile.row_parts
    return (tile.channel_parts == 1 or channels - channels // tile.channel_parts <= problem.channels - tile.simd) and (
        row_parts == 1 or pixels - pixels // row_parts <= problem.pixels - tile.pixels
    )
