"""Analyses of the generic rule: contiguous axes, vector widths, and how blocks depend on one another."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ...analysis.blocks import SPATIAL, blocks_of, calls, has_branch, is_reduction, new_schedule, outputs_of
from ...analysis.variables import uses
from ...analysis.work import shape_of
from ..branches import branch_conditions, is_choice

MAX_JOINED = 16
"""Arrays of a concatenation, at most, of each of which an element-wise function becomes a loop of its own."""


def inlined_schedule(func: tirx.PrimFunc) -> s_tir.Schedule:
    """A schedule with blocks inlined that have no reduction, and no calls that consumers would repeat.

    Of blocks with branches only those that choose among arrays by an outer axis, as a concatenation does: the choice is
    hoisted out of the loops (`branches.py`).

    Raises
    ------
    ScheduleError
        The function does not consist of schedulable blocks.
    """
    return _inlined(func).copy()


@lru_cache(maxsize=64)  # asked for each tiling
def _inlined(func: tirx.PrimFunc) -> s_tir.Schedule:
    sch = new_schedule(func)
    for is_inlined in (_is_plain, _joins_arrays):
        for block in blocks_of(sch):
            consumers = sch.get_consumers(block)
            if consumers and not is_reduction(sch, block) and is_inlined(sch, block, consumers):
                with contextlib.suppress(ScheduleError):
                    sch.compute_inline(block)
    return sch


def _is_plain(sch: s_tir.Schedule, block: SBlockRV, consumers: Sequence[SBlockRV]) -> bool:
    """Whether a block has no branch, and no calls that consumers would repeat."""
    return not has_branch(sch, block) and (len(consumers) == 1 or not calls(sch, block))


def _joins_arrays(sch: s_tir.Schedule, block: SBlockRV, consumers: Sequence[SBlockRV]) -> bool:
    """Whether a block chooses one of few arrays by its outer axes, and its consumer computes element by element."""
    if not has_branch(sch, block) or len(consumers) > 1 or is_reduction(sch, consumers[0]):
        return False
    if has_branch(sch, consumers[0]):
        return False
    conditions = branch_conditions(sch.get(block).body)
    last = sch.get(block).iter_vars[-1].var
    return len(conditions) < MAX_JOINED and all(is_choice(c) and not uses(c, last) for c in conditions)


def spatial_axes(block: s_tir.SBlock) -> list[tirx.IterVar]:
    """The axes of a block that are not reduced."""
    return [axis for axis in block.iter_vars if axis.iter_type == SPATIAL]


def vector_width(extent: int, simd: int) -> int:
    """Elements of the vectors that a loop is split into: a power of two if one divides it, otherwise any divisor."""
    powers = [w for w in (64, 32, 16, 8, 4) if w <= simd and extent % w == 0]
    if powers and powers[0] >= min(8, simd):
        return powers[0]
    return max(d for d in range(1, simd + 1) if extent % d == 0)


def reads_along(block: s_tir.SBlock, axis: tirx.Var) -> bool:
    """Whether a block reads something contiguously along an axis, and its other reads do not depend on the axis."""
    last = [len(r.region) > 0 and r.region[-1].min.same_as(axis) for r in block.reads]
    return any(last) and all(here or not _moves(read, axis) for here, read in zip(last, block.reads, strict=True))


def _moves(read: TensorRegion, axis: tirx.Var) -> bool:
    return any(uses(part.min, axis) for part in read.region)


@lru_cache(maxsize=256)  # asked for each tiling
def flat_axes(block: s_tir.SBlock) -> int:
    """How many of a block's last axes can be fused: all accesses are contiguous over them, or do not use them.

    Returns
    -------
    int
        1 where no two axes can be fused.
    """
    axes = [axis.var for axis in block.iter_vars]
    extents = [int(axis.dom.extent) for axis in block.iter_vars]
    if len(spatial_axes(block)) != len(axes) or not isinstance(block.body, tirx.BufferStore):
        return 1
    accesses: list[tuple[Sequence[Expr], tuple[int, ...]]] = [(list(block.body.indices), shape_of(block.body.buffer))]
    counts: dict[tirx.Var, int] = dict.fromkeys(axes, 0)

    def load(node: TensorLoad) -> None:
        accesses.append((list(node.indices), shape_of(node.source)))

    def count(var: tirx.Var) -> None:
        if var in counts:
            counts[var] += 1

    tvm_ffi.structural_walk(block.body, [(TensorLoad, load), (tirx.Var, count)], order="pre")
    run = 1
    while run < len(axes) and _is_flat(axes[-run - 1 :], extents[-run - 1 :], accesses, counts):
        run += 1
    return run


def _is_flat(
    axes: Sequence[tirx.Var],
    extents: Sequence[int],
    accesses: Sequence[tuple[Sequence[Expr], tuple[int, ...]]],
    counts: Mapping[tirx.Var, int],
) -> bool:
    """Whether the axes are used only as the last indices of arrays with these extents."""
    used = 0
    for indices, shape in accesses:
        last = indices[-len(axes) :]
        if len(last) == len(axes) and all(i.same_as(a) for i, a in zip(last, axes, strict=True)):
            if shape[-len(axes) + 1 :] != tuple(extents[1:]):
                return False
            used += len(axes)
    return used == sum(counts[axis] for axis in axes)


def splits_of(shape: Sequence[int], parts: int) -> tuple[int, ...] | None:
    """How many parts each axis is split into: the outer ones fully, then one partly; None where that is impossible."""
    splits = []
    for extent in shape:
        here = math.gcd(extent, parts)
        splits.append(here)
        parts //= here
        if here != extent:
            break
    return tuple(splits) if parts == 1 else None


def exact_axes(sch: s_tir.Schedule, output: SBlockRV) -> dict[tirx.Buffer, frozenset[int]]:
    """For each array the axes of an output that index it directly in all reads.

    Inside the loops of these axes the array's producer computes nothing twice.
    """
    found: dict[tirx.Buffer, list[int | None]] = {}
    for rv in reversed(blocks_of(sch)):
        block = sch.get(rv)
        axes = spatial_axes(block)
        if block.same_as(sch.get(output)):
            by_axis: dict[tirx.Var, int | None] = {axis.var: i for i, axis in enumerate(axes)}
        else:
            dims = found.get(block.writes[0].source, [])
            by_axis = {r.min: d for r, d in zip(block.writes[0].region, dims, strict=False) if r.min in by_var(axes)}
        for read in block.reads:
            here = [by_axis.get(r.min) if isinstance(r.min, tirx.Var) else None for r in read.region]
            before = found.setdefault(read.source, here)
            found[read.source] = [a if a == b else None for a, b in zip(before, here, strict=True)]
    return {buffer: frozenset(d for d in dims if d is not None) for buffer, dims in found.items()}


def by_var(axes: Sequence[tirx.IterVar]) -> set[tirx.Var]:
    """The variables of axes."""
    return {axis.var for axis in axes}


def output_shapes(func: tirx.PrimFunc) -> tuple[tuple[int, ...], ...]:
    """Extents of the axes of each output; empty where the function is not schedulable."""
    try:
        sch = inlined_schedule(func)
        return tuple(tuple(int(axis.dom.extent) for axis in spatial_axes(sch.get(block))) for block in outputs_of(sch))
    except ScheduleError:
        return ()
