"""Reading a fused function: its blocks, and the multiply-add that dominates it."""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.s_tir.schedule import SBlockRV

SPATIAL, REDUCTION = 0, 2


@dataclass(frozen=True, slots=True)
class Anchor:
    """The block `out[..] += data[..] * weight[..]` of a convolution or a matrix product.

    Parameters
    ----------
    block : SBlockRV
    weight : int
        Which of the block's reads is the weight: a parameter of the function, indexed by plain axes.
    vector : int
        Axis of the block that the weight has and the data has not: output channels, columns.
    vector_dim : int
        The dimension of the weight that this axis indexes.
    row : int
        Innermost axis that the data has and the weight has not: pixels of a row, rows of a matrix; -1: none.
    """

    block: SBlockRV
    weight: int
    vector: int
    vector_dim: int
    row: int


def blocks_of(sch: s_tir.Schedule) -> list[SBlockRV]:
    """All blocks under the root, in the order of the program."""
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def is_reduction(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block has a reduction axis."""
    return any(axis.iter_type == REDUCTION for axis in sch.get(block).iter_vars)


def outputs_of(sch: s_tir.Schedule) -> list[SBlockRV]:
    """The blocks that no other block reads from: they write the function's outputs."""
    return [b for b in blocks_of(sch) if not sch.get_consumers(b)]


def one_result(sch: s_tir.Schedule) -> bool:
    """Whether a function has one output, whose elements are all made of results of its reduction.

    Padding after the reduction makes elements of nothing. Computed under the reduction's loops, as TVM's
    `reverse_compute_at` does it, they would never be written.
    """
    if len(outputs_of(sch)) != 1:
        return False
    after = [b for block in blocks_of(sch) if is_reduction(sch, block) for b in sch.get_consumers(block)]
    while after:
        block = after.pop()
        if has_branch(sch, block):
            return False
        after += sch.get_consumers(block)
    return True


def calls(sch: s_tir.Schedule, block: SBlockRV) -> list[str]:
    """Names of the intrinsics that a block calls."""
    found: list[str] = []
    tvm_ffi.structural_walk(sch.get(block).body, [(Call, lambda c: found.append(c.op.name))], order="pre")
    return found


def has_branch(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block computes a choice, as padding does: inlined, it would sit in the inner loop."""
    return any(name.endswith("if_then_else") for name in calls(sch, block))


def find_anchor(sch: s_tir.Schedule) -> Anchor | None:
    """Find the function's multiply-add, if it has exactly one and nothing else reduces.

    Returns
    -------
    Anchor or None
        None where the function is no convolution or matrix product that `Anchor` can describe, as a
        grouped convolution, whose channel axis indexes the data too.
    """
    reductions = [b for b in blocks_of(sch) if is_reduction(sch, b)]
    if len(reductions) != 1:
        return None
    block = sch.get(reductions[0])
    store = block.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add):
        return None
    product = store.value.b
    if not isinstance(product, tirx.Mul):
        return None
    loads = [_load(product.a), _load(product.b)]
    if None in loads:
        return None
    spatial = [i for i, axis in enumerate(block.iter_vars) if axis.iter_type == SPATIAL]
    used = [_axes(load, block.iter_vars) for load in loads]
    for weight, data in ((1, 0), (0, 1)):
        only_weight = [i for i in spatial if i in used[weight] and i not in used[data] and _extent(block, i) > 1]
        plain = _plain_axes(loads[weight], block.iter_vars)
        if len(only_weight) != 1 or plain is None:
            continue
        read = _read_index(block, loads[weight])
        if read is None:
            continue
        rows = [i for i in spatial if i in used[data] and i not in used[weight] and _extent(block, i) > 1]
        vector = only_weight[0]
        return Anchor(reductions[0], read, vector, plain.index(vector), rows[-1] if rows else -1)
    return None


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


def _plain_axes(load: TensorLoad, iter_vars: Sequence[tirx.IterVar]) -> list[int] | None:
    """The axis behind each index of a load, or None where an index is more than an axis or a constant."""
    position = {axis.var: i for i, axis in enumerate(iter_vars)}
    plain = []
    for index in load.indices:
        if isinstance(index, tirx.Var) and index in position:
            plain.append(position[index])
        elif isinstance(index, tirx.IntImm):
            plain.append(-1)
        else:
            return None
    return plain


def _read_index(block: s_tir.SBlock, load: TensorLoad) -> int | None:
    for i, region in enumerate(block.reads):
        if region.source.same_as(load.source):
            return i
    return None
