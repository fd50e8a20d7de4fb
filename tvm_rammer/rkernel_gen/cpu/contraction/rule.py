"""CPU tilings of convolutions and matrix products: output channels in vectors, pixels in registers.

One rTask computes a block of channels and rows. Inside, a register tile holds `pixels x vectors`
accumulators: each step of the reduction loads `vectors` vectors of weights and broadcasts `pixels`
values. Constant weights are packed so that those loads are contiguous. This is the outer-product
micro-kernel of Goto and van de Geijn (TOMS 2008) with the roles of A and B taken by pixels and weights.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import tvm
from tvm import s_tir, tirx
from tvm.s_tir.schedule import ScheduleError

from ....ir import ITEM_BYTES
from ....kernel import ScheduledKernel
from ...analysis.anchor import REDUCTION, find_anchor, one_result
from ...tiling import Function, Tiling
from .. import cost
from ..space import MOST_RTASKS_PER_UNIT, choices_of, divisors, finish, pick, useful
from .code import Tile, contraction_schedule, extent_of, outer_axes, pack_of, row_axis_of

REGISTERS = 24
"""Vector registers that the accumulators may take, of 32 (AVX-512); half of that on AVX2, which has 16."""
MOST_VECTORS = 8


@dataclass(frozen=True, slots=True)
class _Form:
    """What the tilings of a function depend on.

    Parameters
    ----------
    weight : int
        The parameter that is the weight.
    vector_dim : int
        Its dimension of channels.
    channels, pixels, rows, batch : int
        Extents: of the vectors' axis, of the register tile's other axis, of the axis that is cut into
        `row_parts` (0: the pixels are), and of all others, each of whose elements is at least one rTask.
    weights : int
        Bytes of weights that are multiplied with a pixel.
    item : int
        Bytes of an element.
    results : int
        Elements of the output.
    scattered : bool
        Whether the vectors' axis is not the last one of the output.
    """

    weight: int
    vector_dim: int
    channels: int
    pixels: int
    rows: int
    batch: int
    weights: int
    item: int
    results: int
    scattered: bool


@lru_cache(maxsize=64)
def _form(func: tirx.PrimFunc) -> _Form | None:
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    anchor = find_anchor(sch)
    if anchor is None or not one_result(sch):
        return None
    block = sch.get(anchor.block)
    weight = block.reads[anchor.weight].source
    param = next((i for i, p in enumerate(func.params) if p.same_as(weight)), None)
    if param is None:
        return None
    row = row_axis_of(block, anchor)
    item = ITEM_BYTES[str(block.writes[0].source.dtype)]
    channels = extent_of(block, anchor.vector)
    reduced = (i for i, axis in enumerate(block.iter_vars) if axis.iter_type == REDUCTION)
    return _Form(
        weight=param,
        vector_dim=anchor.vector_dim,
        channels=channels,
        pixels=extent_of(block, anchor.row) if anchor.row >= 0 else 1,
        rows=extent_of(block, row) if row >= 0 else 0,
        batch=math.prod(extent_of(block, i) for i in outer_axes(block, anchor) if i != row),
        weights=channels * math.prod(extent_of(block, i) for i in reduced) * item,
        item=item,
        results=math.prod(int(s) for s in block.writes[0].source.shape),
        scattered=not block.writes[0].region[-1].min.same_as(block.iter_vars[anchor.vector].var),
    )


@dataclass(frozen=True, slots=True)
class ContractionRule:
    """Register tiles of channels and pixels; the rTasks are blocks of channels and rows."""

    name: str = "contraction"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All register tiles that fit the registers, with all cuts."""
        form = _applicable(function)
        if form is None:
            return ()
        return useful([_tiling(form, function, tile) for tile in _tiles(form, function)])

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Schedule one of them."""
        form = _applicable(function)
        if form is None:
            return None
        tile = pick(_tiles(form, function), choices)
        if tile is None:
            return None
        pack = form.weight in function.constants
        try:
            sch = contraction_schedule(function.func, tile, pack=pack)
            stock = contraction_schedule(function.func, tile, pack=True, inside=True) if pack else sch
        except ScheduleError:
            return None
        weight = function.func.params[form.weight]
        packs = {form.weight: pack_of(weight.shape, form.vector_dim, tile.lanes)} if pack else {}
        trace = stock.trace.simplified(False)
        return finish(function, _tiling(form, function, tile), sch.mod["main"], packs, trace)


def _applicable(function: Function) -> _Form | None:
    """The form of a function whose weight can be read in vectors: packed, or as it lies."""
    form = _form(function.func)
    if form is None:
        return None
    contiguous = form.vector_dim == len(function.func.params[form.weight].shape) - 1
    return form if contiguous or form.weight in function.constants else None


def _tiling(form: _Form, function: Function, tile: Tile) -> Tiling:
    rtasks = form.batch * tile.channel_parts * tile.row_parts
    register = cost.Register(tile.vectors, tile.pixels, tile.lanes, form.results, form.scattered)
    work = cost.Work.of(function.func)
    time = cost.contraction_us(work, rtasks, register, function.device)
    data = (work.nbytes - form.weights - form.results * form.item) / (form.batch * tile.row_parts)
    late = cost.late_us(form.weights / tile.channel_parts, max(0.0, data), register, function.device)
    return Tiling("contraction", choices_of(tile), rtasks, time, late)


def _tiles(form: _Form, function: Function) -> Iterator[Tile]:
    device = function.device
    widest = max(1, device.vector_bytes // form.item)
    lanes = max(w for w in divisors(form.channels) if w <= widest)
    budget = REGISTERS if device.vector_bytes >= 64 else REGISTERS // 2
    for vectors, pixels in itertools.product(divisors(form.channels // lanes), divisors(form.pixels)):
        if vectors > MOST_VECTORS or vectors * pixels > budget:
            continue
        rows = form.rows or form.pixels // pixels
        for channel_parts, row_parts in itertools.product(divisors(form.channels // lanes // vectors), divisors(rows)):
            parts = channel_parts * row_parts
            if parts == 1 or form.batch * parts <= MOST_RTASKS_PER_UNIT * device.units:
                yield Tile(lanes, vectors, pixels, channel_parts, row_parts)
