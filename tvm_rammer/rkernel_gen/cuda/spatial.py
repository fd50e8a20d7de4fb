"""Schedule steps on spatial blocks and axes, which several CUDA rules share."""

import math

from tvm import s_tir
from tvm.s_tir.schedule import LoopRV, SBlockRV, ScheduleError

from ..analysis.blocks import REDUCTION, SPATIAL, blocks_of, is_reduction, loops_by_axis


def inline_spatial(sch: s_tir.Schedule) -> None:
    """Inline every block that neither reduces nor writes an output, as far as TVM can."""
    for block in blocks_of(sch):
        if sch.get_consumers(block) and not is_reduction(sch, block):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue


def set_scopes(sch: s_tir.Schedule, block: SBlockRV, scope: str) -> None:
    """Put all that a block writes into one kind of memory: one block may compute a mean and a variance."""
    for index in range(len(sch.get(block).writes)):
        sch.set_scope(block, index, scope)


def spatial_loops(sch: s_tir.Schedule, block: SBlockRV) -> list[LoopRV]:
    """Loops over the spatial axes of a block that is not scheduled yet; they are nested as the axes are afterwards.

    What computes one number without axes has none: TVM gives such a block an axis, but no loop over it.
    """
    if not sch.get_loops(block):
        return []
    by_axis = zip(loops_by_axis(sch, block), sch.get(block).iter_vars, strict=True)
    loops = [loop for loop, axis in by_axis if axis.iter_type == SPATIAL]
    if len(loops) > 1:
        sch.reorder(*loops)
    return loops


def count_spatial(sch: s_tir.Schedule, block: SBlockRV) -> int:
    """Elements that a block writes."""
    return _count(sch, block, SPATIAL)


def count_terms(sch: s_tir.Schedule, block: SBlockRV) -> int:
    """Terms of each sum that a block computes."""
    return _count(sch, block, REDUCTION)


def _count(sch: s_tir.Schedule, block: SBlockRV, iter_type: int) -> int:
    axes = sch.get(block).iter_vars
    return math.prod(int(axis.dom.extent) for axis in axes if axis.iter_type == iter_type)
