"""Groups of a convolution as an axis of their own.

TVM writes the group as a quotient of the output channel, `data[n, f // per_group * channels + c, ...]`. So the channel
indexes both operands, and the convolution is no matrix product. With f = group x per_group + filter it is a batch of
them.
"""

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.s_tir.schedule import SBlockRV

from ..analysis.anchor import factors_of
from ..analysis.blocks import REDUCTION, SPATIAL
from ..analysis.work import shape_of


def separate_groups(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Split a block's axis of output channels into groups and filters; return whether the block had groups.

    Only a block that adds up products can have them, and only whole ones: other functions divide indices, too.
    """
    stmt = sch.get(block)
    if factors_of(stmt) is None:
        return False
    for index, read in enumerate(stmt.reads):
        for dimension, part in enumerate(read.region):
            found = _quotient(part.min)
            position = [i for i, axis in enumerate(stmt.iter_vars) if found and axis.var.same_as(found[0])]
            if not (position and found) or stmt.iter_vars[position[0]].iter_type != SPATIAL:
                continue
            channels = _channels(stmt, part.min)
            if int(stmt.iter_vars[position[0]].dom.extent) % found[1] or shape_of(read.source)[dimension] % channels:
                continue
            _split_axis(sch, block, position[0], found[1])
            # With the new layout TVM simplifies the operand's indices. The copy is inlined later.
            copy = sch.cache_read(block, index, "global")
            _split_dimension(sch, copy, dimension, channels)
            return True
    return False


def _quotient(index: Expr) -> tuple[tirx.Var, int] | None:
    """The variable and divisor of a quotient within an index."""
    found: list[tuple[tirx.Var, int]] = []

    def visit(node: tirx.FloorDiv) -> None:
        if isinstance(node.a, tirx.Var) and isinstance(node.b, tirx.IntImm):
            found.append((node.a, int(node.b)))

    tvm_ffi.structural_walk(index, [(tirx.FloorDiv, visit)], order="pre")
    return found[0] if len(found) == 1 else None


def _channels(stmt: s_tir.SBlock, index: Expr) -> int:
    """Channels of a group: the extent of the sum over them."""
    used = set(tirx.analysis.undefined_vars(index))
    summed = [axis for axis in stmt.iter_vars if axis.iter_type == REDUCTION and axis.var in used]
    return int(summed[0].dom.extent) if summed else 1


def _split_axis(sch: s_tir.Schedule, block: SBlockRV, position: int, divisor: int) -> None:
    axes = [tirx.Var(f"a{i}", "int64") for i in range(len(sch.get(block).iter_vars))]
    split = [axes[position] // divisor, axes[position] % divisor]
    sch.transform_block_layout(block, tirx.IndexMap(axes, [*axes[:position], *split, *axes[position + 1 :]], None))


def _split_dimension(sch: s_tir.Schedule, copy: SBlockRV, dimension: int, size: int) -> None:
    dims = [tirx.Var(f"d{i}", "int64") for i in range(len(sch.get(copy).writes[0].region))]
    split = [dims[dimension] // size, dims[dimension] % size]
    index_map = tirx.IndexMap(dims, [*dims[:dimension], *split, *dims[dimension + 1 :]], None)
    sch.transform_layout(copy, ("write", 0), index_map)
