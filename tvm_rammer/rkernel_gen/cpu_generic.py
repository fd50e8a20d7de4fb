"""CPU tilings of everything else: the output's outer loops are cut into rTasks.

What comes before the output (padding, the sums of a softmax) moves inside the rTask that needs it. Where
several rTasks need the same value, each computes it: rTasks of one operator are independent (Rammer, 3.1).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.s_tir.schedule import LoopRV, SBlockRV, ScheduleError

from ..kernel import ScheduledKernel
from . import cpu_cost
from .anchor import SPATIAL, blocks_of, calls, has_branch, is_reduction, outputs_of
from .cpu_space import MOST_RTASKS_PER_UNIT, choices_of, finish, pick
from .tiling import Function, Tiling


@dataclass(frozen=True, slots=True)
class Tile:
    """A tiling: the number of rTasks, and the longest vector (in elements) that loops are cut into."""

    parts: int
    lanes: int


@dataclass(frozen=True, slots=True)
class GenericRule:
    """Any function: the rTasks are blocks of its outputs' outer axes."""

    name: str = "generic"

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All numbers of rTasks that all outputs can be cut into; at least one rTask, which any function can be."""
        return [_tiling(function, tile) for tile in _tiles(function)]

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Schedule one of them; a function that no schedule can work on, as a cumulative sum, stays as it is."""
        tile = pick(_tiles(function), choices)
        if tile is None:
            return None
        try:
            code = _apply(function.func, tile.parts, tile.lanes)
        except ScheduleError:
            if tile.parts != 1:
                return None
            code = function.func
        return finish(function, _tiling(function, tile), code)


def _tiles(function: Function) -> Iterator[Tile]:
    shapes = _output_shapes(function.func)
    most = MOST_RTASKS_PER_UNIT * function.device.units
    lanes = max(1, function.device.vector_bytes // 4)
    for parts in range(1, most + 1):
        if parts == 1 or (shapes and all(_cuts(shape, parts) is not None for shape in shapes)):
            yield Tile(parts, lanes)


def _tiling(function: Function, tile: Tile) -> Tiling:
    repeated = _repeated(function.func, tile.parts)
    time = cpu_cost.plain_us(cpu_cost.Work.of(function.func), tile.parts, function.device, recomputed=repeated)
    return Tiling("generic", choices_of(tile), tile.parts, time)


@lru_cache(maxsize=64)
def _output_shapes(func: tirx.PrimFunc) -> tuple[tuple[int, ...], ...]:
    """Spatial extents of the blocks that write the outputs; none where a schedule cannot work on the function."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    try:
        _inline(sch)
        return tuple(_spatial(sch, block) for block in outputs_of(sch))
    except ScheduleError:
        return ()


def _spatial(sch: s_tir.Schedule, block: SBlockRV) -> tuple[int, ...]:
    return tuple(int(a.dom.extent) for a in sch.get(block).iter_vars if a.iter_type == SPATIAL)


def _cuts(shape: tuple[int, ...], parts: int) -> tuple[int, ...] | None:
    """Into how many each axis is cut: the outer ones wholly, then one perhaps in part; None where that cannot be."""
    made = []
    for extent in shape:
        here = math.gcd(extent, parts)
        made.append(here)
        parts //= here
        if here != extent:
            break
    return tuple(made) if parts == 1 else None


def _repeated(func: tirx.PrimFunc, parts: int) -> float:
    """How many times all operations are done, where each rTask computes for itself what it needs."""
    shapes = _output_shapes(func)
    cuts = _cuts(shapes[0], parts) if shapes else None
    if cuts is None or parts == 1:
        return 1.0
    done = needed = 0.0
    for flops, axes in _shares(func):
        needed += flops
        done += flops * parts / math.prod(c for axis, c in enumerate(cuts) if axis in axes)
    return done / max(1.0, needed)


@lru_cache(maxsize=64)
def _shares(func: tirx.PrimFunc) -> tuple[tuple[float, frozenset[int]], ...]:
    """Of each block the operations, and the axes of the (first) output that choose which of its elements are needed."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    _inline(sch)
    chosen: dict[tirx.Buffer, list[frozenset[int]]] = {}
    shares = []
    for rv in reversed(blocks_of(sch)):
        block = sch.get(rv)
        spatial = [a for a in block.iter_vars if a.iter_type == SPATIAL]
        known = chosen.get(block.writes[0].source, [frozenset([i]) for i in range(len(spatial))])
        axes = {axis.var: by for axis, by in zip(spatial, known, strict=False)}
        shares.append((_operations(block), frozenset().union(*axes.values())))
        for read in block.reads:
            indices = [_used(r.min, axes) for r in read.region]
            chosen.setdefault(read.source, indices)
    return tuple(shares)


def _operations(block: s_tir.SBlock) -> float:
    """About how many operations a block does: one for each node of its value, at each of its points."""
    nodes: list[Expr] = []
    tvm_ffi.structural_walk(block.body, [(Expr, nodes.append)], order="pre")
    return float(len(nodes)) * math.prod(int(a.dom.extent) for a in block.iter_vars)


def _used(index: Expr, axes: Mapping[tirx.Var, frozenset[int]]) -> frozenset[int]:
    found: list[frozenset[int]] = [frozenset()]
    tvm_ffi.structural_walk(index, [(tirx.Var, lambda v: found.append(axes.get(v, frozenset())))], order="pre")
    return frozenset().union(*found)


def _apply(func: tirx.PrimFunc, parts: int, lanes: int) -> tirx.PrimFunc:
    """Schedule the function; its outermost loop is parallel."""
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    _inline(sch)
    partial = [b for b in blocks_of(sch) if is_reduction(sch, b) and sch.get_consumers(b)]
    partial = [p for p in (_partial(sch, b, lanes) for b in partial) if p is not None]
    for output in outputs_of(sch):
        loop = _cut(sch, output, parts)
        sch.parallel(loop)
        for producer in reversed(_producers(sch, output)):
            sch.compute_at(producer, loop)
    for block in partial:
        lane, *others = sch.get_loops(block)[1:]
        if others:
            sch.reorder(*others, lane)
        sch.vectorize(lane)
    for block in blocks_of(sch):
        if _costly(sch, block) and not is_reduction(sch, block) and not has_branch(sch, block):
            _vectorize(sch, block, lanes)
    return sch.mod["main"]


def _partial(sch: s_tir.Schedule, block: SBlockRV, lanes: int) -> SBlockRV | None:
    """Let a reduction run in vectors along its last axis, each lane for itself: return the block that does so."""
    axes, loops = sch.get(block).iter_vars, sch.get_loops(block)
    extent = int(axes[-1].dom.extent)
    width = max(d for d in range(1, lanes + 1) if extent % d == 0)
    if width < 4 or len(loops) != len(axes) or not _contiguous(sch.get(block), axes[-1].var):
        return None
    try:
        _, lane = sch.split(loops[-1], [None, width])
        return sch.rfactor(lane, factor_axis=len(sch.get(block).writes[0].region))
    except ScheduleError:
        return None


def _contiguous(block: s_tir.SBlock, axis: tirx.Var) -> bool:
    """Whether an axis is the last index of all that a block reads."""
    return all(len(r.region) > 0 and r.region[-1].min.same_as(axis) for r in block.reads)


def _vectorize(sch: s_tir.Schedule, block: SBlockRV, lanes: int) -> None:
    """Compute vectors along the last loop below the rTask's."""
    loops = sch.get_loops(block)[1:]
    if not loops:
        return
    extent = int(sch.get(loops[-1]).extent)
    width = max(d for d in range(1, lanes + 1) if extent % d == 0)
    if width >= 4:
        _, lane = sch.split(loops[-1], [None, width])
        sch.vectorize(lane)


def _inline(sch: s_tir.Schedule) -> None:
    """Inline blocks that compute no sum and no choice, unless a sum would repeat them."""
    for block in blocks_of(sch):
        consumers = sch.get_consumers(block)
        if not consumers or is_reduction(sch, block) or has_branch(sch, block):
            continue
        if len(consumers) == 1 or not _costly(sch, block):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue


def _costly(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block calls a function such as exp."""
    return bool(calls(sch, block))


def _producers(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """All blocks that `block` needs, in the order of the program."""
    needed: list[SBlockRV] = []

    def visit(b: SBlockRV) -> None:
        for producer in sch.get_producers(b):
            if not any(sch.get(producer).same_as(sch.get(n)) for n in needed):
                visit(producer)
                needed.append(producer)

    visit(block)
    return [b for b in blocks_of(sch) if any(sch.get(b).same_as(sch.get(n)) for n in needed)]


def _cut(sch: s_tir.Schedule, block: SBlockRV, parts: int) -> LoopRV:
    """Cut the outer spatial loops of a block into rTasks; return their loop."""
    cuts = _cuts(_spatial(sch, block), parts)
    if cuts is None:
        raise ScheduleError(f"an output cannot be cut into {parts} rTasks")
    axes = sch.get(block).iter_vars
    loops = [loop for loop, axis in zip(sch.get_loops(block), axes, strict=False) if axis.iter_type == SPATIAL]
    if parts == 1:
        return sch.add_unit_loop(loops[0] if loops else block)
    outer = []
    for loop, count in zip(loops, cuts, strict=False):
        outer.append(loop if count == int(sch.get(loop).extent) else sch.split(loop, [count, None])[0])
    sch.reorder(*outer)
    return sch.fuse(*outer)
