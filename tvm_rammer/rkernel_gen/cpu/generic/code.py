"""The schedule of any function on a CPU: outputs are split into rTasks, and producers move into their loops."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.s_tir.schedule import LoopRV, SBlockRV, ScheduleError

from ...analysis.blocks import (
    REDUCTION,
    SPATIAL,
    blocks_of,
    calls,
    has_branch,
    is_reduction,
    loops_by_axis,
    outputs_of,
    producers_of,
)
from .read import exact_axes, flat_axes, inlined_schedule, reads_along, spatial_axes, splits_of, vector_width

MIN_VECTOR = 4
"""Elements of a vector, at least; shorter loops stay scalar."""
LONG_SUM = 16
"""Rounds of a sum, at least, after which it is added up from several vectors."""
FOLDED = 4
"""Partial sums that are added up one after another. A longer vector is added up in vectors of as many first."""
MAX_COPIES = 4
"""Copies of one input element in an output's row that are unrolled, at most."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop of an output, and the axes that it iterates over."""

    rv: LoopRV
    axes: frozenset[int]


def generic_schedule(func: tirx.PrimFunc, parts: int, simd: int) -> s_tir.Schedule:
    """Schedule the function, as `main` of a module; its outermost loop is parallel.

    Parameters
    ----------
    parts : int
        Number of rTasks.
    simd : int
        Elements of a vector.

    Raises
    ------
    ScheduleError
        The function's blocks cannot be moved into the outputs' loops, or an output cannot be split into `parts`.
    """
    sch = inlined_schedule(func)
    for block in blocks_of(sch):
        if not sch.get_loops(block):
            sch.add_unit_loop(block)  # what is computed of a single number; TVM cannot split a sum beside it otherwise
    reductions = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    partials = [block for reduction in reductions for block in _partial_sums(sch, reduction, simd)]
    depths: dict[str, int] = {}
    for output in outputs_of(sch):
        exact = exact_axes(sch, output)
        loops = _split_output(sch, output, parts)
        sch.parallel(loops[0].rv)
        depths |= _place_producers(sch, output, loops, exact)
    for block in partials:
        element, *others = sch.get_loops(block)[depths[_name(sch, block)] + 1 :]
        if others:
            sch.reorder(*others, element)
        sch.vectorize(element)
    for block in blocks_of(sch):
        loops = sch.get_loops(block)[depths.get(_name(sch, block), 0) + 1 :]
        if is_reduction(sch, block):
            _vectorize_columns(sch, block, loops, simd)
        elif has_branch(sch, block):
            continue
        elif calls(sch, block) and flat_axes(sch.get(block)) == 1:
            _vectorize(sch, loops, simd)
        else:
            _unroll_copies(sch, block, loops)
    return sch


def _name(sch: s_tir.Schedule, block: SBlockRV) -> str:
    return str(sch.get(block).name_hint)


def _partial_sums(sch: s_tir.Schedule, block: SBlockRV, simd: int) -> list[SBlockRV]:
    """Split a reduction along its last axis into a vector of partial sums; return the blocks that compute such."""
    axis = _last_sum(sch, block)
    width = _sum_width(sch.get(block), int(axis.dom.extent), simd)
    if width < MIN_VECTOR or not reads_along(sch.get(block), axis.var):
        return []
    # `rfactor` would drop the predicate of a split that does not divide, and `compute_at` wants axes as indices.
    plain = all(isinstance(place.min, tirx.Var | tirx.IntImm) for place in sch.get(block).writes[0].region)
    if not plain and width < int(axis.dom.extent):
        return []
    found: list[SBlockRV] = []
    for lanes in (width, FOLDED) if plain and width > FOLDED and width % FOLDED == 0 else (width,):
        try:
            place = list(sch.get(block).iter_vars).index(_last_sum(sch, block))
            _, element = sch.split(loops_by_axis(sch, block)[place], [None, lanes])
            found.append(sch.rfactor(element, factor_axis=len(sch.get(block).writes[0].region)))
        except ScheduleError:
            break
    return found


def _sum_width(block: s_tir.SBlock, extent: int, simd: int) -> int:
    """Partial sums along the last axis: a vector of them; of long sums up to four, which do not wait for one another.

    Or two, and not all lanes of the second, where that is better than one sum after another, as in the mean of 13 x 13
    pixels by vectors of 8.
    """
    width = vector_width(extent, simd)
    for vectors in (4, 2):
        if width == simd and extent % (vectors * simd) == 0 and extent >= vectors * LONG_SUM * simd:
            return vectors * simd
    rows = math.prod(int(axis.dom.extent) for axis in block.iter_vars if axis.iter_type == REDUCTION) // extent
    if width >= MIN_VECTOR or rows == 1:
        return width
    return next((d for d in range(simd + 1, 2 * simd + 1) if extent % d == 0), width)


def _last_sum(sch: s_tir.Schedule, block: SBlockRV) -> tirx.IterVar:
    """The last axis that a reduction sums over."""
    return [axis for axis in sch.get(block).iter_vars if axis.iter_type == REDUCTION][-1]


def _split_output(sch: s_tir.Schedule, block: SBlockRV, parts: int) -> list[_Loop]:
    """Split the outer spatial loops of a block into rTasks; return the loop over rTasks and those in it."""
    axes = sch.get(block).iter_vars
    splits = splits_of([int(axis.dom.extent) for axis in spatial_axes(sch.get(block))], parts)
    if splits is None:
        raise ScheduleError(f"an output cannot be split into {parts} rTasks")
    if all(int(axis.dom.extent) == 1 for axis in axes):
        return [_Loop(sch.add_unit_loop(sch.get_loops(block)[0]), frozenset())]
    by_axis = loops_by_axis(sch, block)
    sums = [loop for loop, axis in zip(by_axis, axes, strict=True) if axis.iter_type == REDUCTION]
    results = [loop for loop, axis in zip(by_axis, axes, strict=True) if axis.iter_type == SPATIAL]
    if not results:
        return [_Loop(sch.add_unit_loop(sums[0] if sums else block), frozenset())]
    if sums:
        sch.reorder(*results, *sums)
    outer, inner = [], []
    for n, loop in enumerate(results):
        if n < len(splits) and splits[n] == int(sch.get(loop).extent):
            outer.append(loop)
        elif n >= len(splits) or splits[n] == 1:
            inner.append(_Loop(loop, frozenset([n])))
        else:
            part, rest = sch.split(loop, [splits[n], None])
            outer.append(part)
            inner.append(_Loop(rest, frozenset([n])))
    if not outer:
        rtask = sch.add_unit_loop(results[0])
    else:
        sch.reorder(*outer)
        rtask = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    inner = _fuse_flat(sch, inner, len(results) - flat_axes(sch.get(block)))
    return [_Loop(rtask, frozenset()), *(loop for loop in inner if int(sch.get(loop.rv).extent) > 1)]


def _fuse_flat(sch: s_tir.Schedule, loops: list[_Loop], first: int) -> list[_Loop]:
    """Fuse the loops over contiguous axes: the axis `first` and all after it."""
    last = [loop for loop in loops if min(loop.axes) >= first]
    if len(last) < 2:
        return loops
    fused = _Loop(sch.fuse(*(loop.rv for loop in last)), frozenset().union(*(loop.axes for loop in last)))
    return [*loops[: len(loops) - len(last)], fused]


def _place_producers(
    sch: s_tir.Schedule, output: SBlockRV, loops: Sequence[_Loop], exact: Mapping[tirx.Buffer, frozenset[int]]
) -> dict[str, int]:
    """Move each producer of an output into the innermost loop in which it computes nothing twice.

    The last loop is left to the output's vectors. Returns the depth of each block below the rTasks' loop.
    """
    depths: list[tuple[s_tir.SBlock, int]] = []
    for producer in reversed(producers_of(sch, output)):
        written = sch.get(producer).writes[0].source
        readers = [depth for block, depth in depths if any(r.source.same_as(written) for r in block.reads)]
        limit = min([*readers, max(0, len(loops) - 2)])
        depth = 0
        while depth < limit and loops[depth + 1].axes <= exact.get(written, frozenset()):
            depth += 1
        sch.compute_at(producer, loops[depth].rv)
        depths.append((sch.get(producer), depth))
    return {str(block.name_hint): depth for block, depth in depths}


def _vectorize(sch: s_tir.Schedule, loops: Sequence[LoopRV], simd: int) -> None:
    """Vectorise the last loop."""
    if not loops:
        return
    width = _width(sch, loops[-1], simd)
    if width >= MIN_VECTOR:
        _, element = sch.split(loops[-1], [None, width])
        sch.vectorize(element)


def _vectorize_columns(sch: s_tir.Schedule, block: SBlockRV, loops: Sequence[LoopRV], simd: int) -> None:
    """Vectorise a reduction over its results, where it is not along the contiguous axis."""
    axes = list(sch.get(block).iter_vars)
    reduced = [axis for axis in axes if axis.iter_type == REDUCTION]
    count = sum(int(axis.dom.extent) > 1 for axis in reduced)
    results = loops[: len(loops) - count]
    columns = spatial_axes(sch.get(block))
    if axes[len(axes) - len(reduced) :] != reduced or not results or not count or not columns:
        return
    column = columns[-1].var
    width = _width(sch, results[-1], simd)
    if width < MIN_VECTOR or not reads_along(sch.get(block), column):
        return
    outer, element = sch.split(results[-1], [None, width])
    sums = loops[len(loops) - count :]
    sch.reorder(outer, *sums, element)
    sch.vectorize(element)
    sch.decompose_reduction(block, sums[0])


def _width(sch: s_tir.Schedule, loop: LoopRV, simd: int) -> int:
    """Elements of the vectors that a loop is split into; 0 for a loop of no constant extent."""
    extent = _extent(sch, loop)
    return vector_width(extent, simd) if extent else 0


def _extent(sch: s_tir.Schedule, loop: LoopRV) -> int:
    """Extent of a loop; 0 where it is no constant, as that over what `min(i, 7)` needs of a producer."""
    extent = sch.get(loop).extent
    return int(extent) if isinstance(extent, tirx.IntImm) else 0


def _unroll_copies(sch: s_tir.Schedule, block: SBlockRV, loops: Sequence[LoopRV]) -> None:
    """Unroll the copies of one element, where a row repeats each, as a resize does.

    LLVM then makes loads and shuffles instead of a gather.
    """
    copies = _copies(sch.get(block))
    if loops and 1 < copies <= MAX_COPIES and (_extent(sch, loops[-1]) or 1) % copies == 0:
        _, copy = sch.split(loops[-1], [None, copies])
        sch.unroll(copy)


def _copies(block: s_tir.SBlock) -> int:
    """The divisor of the last axis in an index; 1 where there is none."""
    if not block.iter_vars:
        return 1
    axis, found = block.iter_vars[-1].var, [1]

    def divide(node: tirx.Div | tirx.FloorDiv) -> None:
        if node.a.same_as(axis) and isinstance(node.b, tirx.IntImm):
            found.append(int(node.b))

    def load(node: TensorLoad) -> None:
        for index in node.indices:
            tvm_ffi.structural_walk(index, [(tirx.Div, divide), (tirx.FloorDiv, divide)], order="pre")

    tvm_ffi.structural_walk(block.body, [(TensorLoad, load)], order="pre")
    return max(found)
