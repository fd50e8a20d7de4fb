"""The anchor block of a fused function: the multiply-add of its convolution or matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad
from tvm.s_tir.schedule import SBlockRV

from .blocks import SPATIAL, blocks_of, is_reduction


@dataclass(frozen=True, slots=True)
class Anchor:
    """The block `out[..] += data[..] * weight[..]` of a convolution or a matrix product.

    Parameters
    ----------
    block : SBlockRV
    weight : int
        Index of the weight among the block's reads. Each of its indices is an axis or a constant.
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
    store = block.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add):
        return None
    product = store.value.b
    if not isinstance(product, tirx.Mul):
        return None
    a, b = _load(product.a), _load(product.b)
    if a is None or b is None:
        return None
    loads = (a, b)
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
