"""The anchor block of a fused function: the multiply-add of its convolution or matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad
from tvm.s_tir.schedule import SBlockRV

from .accumulation import read_accumulation
from .blocks import SPATIAL, blocks_of, is_reduction
from .work import shape_of


@dataclass(frozen=True, slots=True)
class Anchor:
    """The block `out[..] += data[..] * weight[..]` of a convolution or a matrix product.

    Parameters
    ----------
    block : SBlockRV
    weight : int
        Index of the weight among the block's reads. Each of its indices is an axis or a constant, no axis is in two.
    vector : int
        Axis of the block that indexes the weight only: output channels, columns.
    vector_dim : int
        The dimension of the weight that this axis indexes.
    row : int
        Innermost axis that indexes the data only: pixels of a row, rows of a matrix; -1 where there is none.
    """

    block: SBlockRV
    weight: int
    vector: int
    vector_dim: int
    row: int


def find_anchor(sch: s_tir.Schedule) -> Anchor | None:
    """Find the function's multiply-add, if it has exactly one and nothing else reduces.

    Returns
    -------
    Anchor or None
        None where the function is no convolution or matrix product that `Anchor` can describe. A grouped convolution
        is none: its channel axis indexes the data too.
    """
    reductions = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(reductions) != 1:
        return None
    block = sch.get(reductions[0])
    loads = factors_of(block)
    if loads is None or not _fills_its_buffer(block) or not _has_a_loop_for_each_axis(sch, reductions[0]):
        return None
    spatial = [i for i, axis in enumerate(block.iter_vars) if axis.iter_type == SPATIAL]
    used = [_axes(load, block.iter_vars) for load in loads]
    for weight, data in ((1, 0), (0, 1)):
        only_weight = [i for i in spatial if i in used[weight] and i not in used[data] and _extent(block, i) > 1]
        plain = _plain(loads[weight].indices, block.iter_vars)
        if len(only_weight) != 1 or plain is None:
            continue
        read, dim = _read_index(block, loads[weight]), plain.index(only_weight[0])
        if read is None or not _covers(loads[weight], dim, _extent(block, only_weight[0])):
            continue
        rows = [i for i in spatial if i in used[data] and i not in used[weight] and _extent(block, i) > 1]
        return Anchor(reductions[0], read, only_weight[0], dim, rows[-1] if rows else -1)
    return None


def factors_of(block: s_tir.SBlock) -> tuple[TensorLoad, TensorLoad] | None:
    """The two elements of different buffers whose products a block adds up; None where it does something else."""
    accumulation = read_accumulation(block)
    if accumulation is None or accumulation.combine != "sum" or not isinstance(accumulation.term, tirx.Mul):
        return None
    a, b = _load(accumulation.term.a), _load(accumulation.term.b)
    return (a, b) if a is not None and b is not None and not a.source.same_as(b.source) else None


def _has_a_loop_for_each_axis(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether the loops around a block are its axes, in their order: rules take a loop by the number of its axis."""
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    realizes: list[s_tir.SBlockRealize] = []
    if loops:
        tvm_ffi.structural_walk(loops[-1].body, [(s_tir.SBlockRealize, realizes.append)], order="pre")
    values = realizes[0].iter_values if realizes else ()
    return len(values) == len(loops) and all(
        value.same_as(loop.loop_var) for value, loop in zip(values, loops, strict=True)
    )


def _fills_its_buffer(block: s_tir.SBlock) -> bool:
    """Whether the indices that a block writes are its axes, and the buffer has no other elements."""
    plain = _plain(block.body.indices, block.iter_vars)
    extents = [_extent(block, axis) if axis >= 0 else 1 for axis in plain or ()]
    return plain is not None and list(shape_of(block.writes[0].source)) == extents


def _covers(load: TensorLoad, dim: int, extent: int) -> bool:
    """Whether a load goes over all of a dimension, so that its buffer can be packed along it."""
    return shape_of(load.source)[dim] == extent


def _extent(block: s_tir.SBlock, axis: int) -> int:
    return int(block.iter_vars[axis].dom.extent)


def _load(expr: Expr) -> TensorLoad | None:
    while isinstance(expr, tirx.Cast):
        expr = expr.value
    return expr if isinstance(expr, TensorLoad) else None


def _axes(load: TensorLoad, iter_vars: Sequence[tirx.IterVar]) -> set[int]:
    """Positions of the block's axes that appear in the indices of a load."""
    found: set[int] = set()
    position = {axis.var: i for i, axis in enumerate(iter_vars)}
    for index in load.indices:
        tvm_ffi.structural_walk(index, [(tirx.Var, lambda v: found.add(position.get(v, -1)))], order="pre")
    return found


def _plain(indices: Sequence[Expr], iter_vars: Sequence[tirx.IterVar]) -> list[int] | None:
    """The axis behind each index, -1 for a constant; None where an index is more than that, or an axis is in two."""
    position = {axis.var: i for i, axis in enumerate(iter_vars)}
    plain = []
    for index in indices:
        if isinstance(index, tirx.Var) and index in position:
            plain.append(position[index])
        elif isinstance(index, tirx.IntImm):
            plain.append(-1)
        else:
            return None
    axes = [axis for axis in plain if axis >= 0]
    return plain if len(set(axes)) == len(axes) else None


def _read_index(block: s_tir.SBlock, load: TensorLoad) -> int | None:
    for i, region in enumerate(block.reads):
        if region.source.same_as(load.source):
            return i
    return None
