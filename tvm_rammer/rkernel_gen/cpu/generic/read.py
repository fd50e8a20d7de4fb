"""What the generic rule reads of a function: its blocks, which loops lie flat in memory, and who needs what of whom."""

import math
from collections.abc import Mapping, Sequence

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion
from tvm.s_tir.schedule import SBlockRV, ScheduleError

from ...analysis.anchor import SPATIAL, blocks_of, calls, has_branch, is_reduction, outputs_of


def start(func: tirx.PrimFunc) -> s_tir.Schedule:
    """Begin a schedule of a function: what computes no sum and no choice is inlined, unless a sum would repeat it.

    Raises
    ------
    ScheduleError
        The function is not written in blocks that a schedule can work on.
    """
    sch = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    for block in blocks_of(sch):
        consumers = sch.get_consumers(block)
        if not consumers or is_reduction(sch, block) or has_branch(sch, block):
            continue
        if len(consumers) == 1 or not calls(sch, block):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue
    return sch


def spatial_axes(block: s_tir.SBlock) -> list[tirx.IterVar]:
    """The axes of a block that are no reductions."""
    return [axis for axis in block.iter_vars if axis.iter_type == SPATIAL]


def vector_width(extent: int, lanes: int) -> int:
    """Elements of the vectors that a loop is cut into: a power of two if one divides it, else any divisor."""
    powers = [w for w in (64, 32, 16, 8, 4) if w <= lanes and extent % w == 0]
    if powers and powers[0] >= min(8, lanes):
        return powers[0]
    return max(d for d in range(1, lanes + 1) if extent % d == 0)


def reads_along(block: s_tir.SBlock, axis: tirx.Var) -> bool:
    """Whether something is read along an axis, and all else does not depend on it."""
    last = [len(r.region) > 0 and r.region[-1].min.same_as(axis) for r in block.reads]
    return any(last) and all(here or not _uses(read, axis) for here, read in zip(last, block.reads, strict=True))


def _uses(read: TensorRegion, axis: tirx.Var) -> bool:
    found: list[tirx.Var] = []
    for r in read.region:
        tvm_ffi.structural_walk(r.min, [(tirx.Var, found.append)], order="pre")
    return any(v.same_as(axis) for v in found)


def flat_axes(block: s_tir.SBlock) -> int:
    """How many of a block's last axes can be walked through as one: all it reads and writes lies so, or does not care.

    Returns
    -------
    int
        1 where no two axes can be joined.
    """
    axes = [axis.var for axis in block.iter_vars]
    extents = [int(axis.dom.extent) for axis in block.iter_vars]
    if len(spatial_axes(block)) != len(axes) or not isinstance(block.body, tirx.BufferStore):
        return 1
    places: list[tuple[Sequence[Expr], tuple[int, ...]]] = [_place(block.body.indices, block.body.buffer)]
    counts: dict[tirx.Var, int] = dict.fromkeys(axes, 0)

    def load(node: TensorLoad) -> None:
        places.append(_place(node.indices, node.source))

    def count(var: tirx.Var) -> None:
        if var in counts:
            counts[var] += 1

    tvm_ffi.structural_walk(block.body, [(TensorLoad, load), (tirx.Var, count)], order="pre")
    run = 1
    while run < len(axes) and _lies_flat(axes[-run - 1 :], extents[-run - 1 :], places, counts):
        run += 1
    return run


def _place(indices: Sequence[Expr], buffer: tirx.Buffer) -> tuple[Sequence[Expr], tuple[int, ...]]:
    return list(indices), tuple(int(s) for s in buffer.shape)


def _lies_flat(
    axes: Sequence[tirx.Var],
    extents: Sequence[int],
    places: Sequence[tuple[Sequence[Expr], tuple[int, ...]]],
    counts: Mapping[tirx.Var, int],
) -> bool:
    """Whether every use of the axes is as the last indices of an array with just these extents."""
    used = 0
    for indices, shape in places:
        last = indices[-len(axes) :]
        if len(last) == len(axes) and all(i.same_as(a) for i, a in zip(last, axes, strict=True)):
            if shape[-len(axes) + 1 :] != tuple(extents[1:]):
                return False
            used += len(axes)
    return used == sum(counts[axis] for axis in axes)


def cuts_of(shape: Sequence[int], parts: int) -> tuple[int, ...] | None:
    """Into how many each axis is cut: the outer ones wholly, then one perhaps in part; None where that cannot be."""
    made = []
    for extent in shape:
        here = math.gcd(extent, parts)
        made.append(here)
        parts //= here
        if here != extent:
            break
    return tuple(made) if parts == 1 else None


def exact_axes(sch: s_tir.Schedule, output: SBlockRV) -> dict[tirx.Buffer, frozenset[int]]:
    """For each array: the axes of an output that name one of its elements (or rows) each, whoever reads it.

    Inside the loops of these axes its producer repeats nothing.
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


def producers_of(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """All blocks that `block` needs, in the order of the program."""
    needed: list[SBlockRV] = []

    def visit(b: SBlockRV) -> None:
        for producer in sch.get_producers(b):
            if not any(sch.get(producer).same_as(sch.get(n)) for n in needed):
                visit(producer)
                needed.append(producer)

    visit(block)
    return [b for b in blocks_of(sch) if any(sch.get(b).same_as(sch.get(n)) for n in needed)]


def output_shapes(func: tirx.PrimFunc) -> tuple[tuple[int, ...], ...]:
    """Extents of the axes of each output; none where a schedule cannot work on the function."""
    try:
        sch = start(func)
        return tuple(tuple(int(axis.dom.extent) for axis in spatial_axes(sch.get(block))) for block in outputs_of(sch))
    except ScheduleError:
        return ()
