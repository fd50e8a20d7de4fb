"""The blocks of a function: a schedule to look at them, what kind they are, and how they depend on one another."""

from collections.abc import Collection
from functools import lru_cache

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, Range, TensorLoad
from tvm.s_tir.schedule import LoopRV, SBlockRV, ScheduleError, _ffi_api

from .claims import REDUCTION, SPATIAL, false_claim
from .reducers import know_extremes

__all__ = ["REDUCTION", "SPATIAL"]


class _Schedule(s_tir.Schedule):  # type: ignore[misc] # TVM ships no types
    """A schedule whose steps do not compare their arguments with the annotations: that took half of a step's time."""

    def copy(self) -> "_Schedule":
        """A schedule that goes on from here by itself; what is known of this one's blocks and loops holds there."""
        made = _Schedule.__new__(_Schedule)
        made.__init_handle_by_constructor__(_ffi_api.ScheduleCopy, self)
        return made


for _name, _step in vars(s_tir.Schedule).items():
    if hasattr(_step, "__wrapped__"):
        setattr(_Schedule, _name, _step.__wrapped__)


def new_schedule(func: tirx.PrimFunc) -> s_tir.Schedule:
    """A schedule of one function, as `main`. It does not print the function whenever a step fails.

    Raises
    ------
    ScheduleError
        A block of the function claims something that is not proven (`claims`): no schedule of it can be trusted.
    """
    flaw = false_claim(func)
    if flaw:
        raise ScheduleError(flaw)
    know_extremes()
    return _unscheduled(func).copy()


def rewritten_schedule(func: tirx.PrimFunc) -> s_tir.Schedule:
    """A schedule of what was made of a function whose claims are proven; its own cannot all be."""
    return _Schedule(tvm.IRModule({"main": func}), error_render_level="none")


@lru_cache(maxsize=64)  # each of a function's kernels starts from it; a copy takes a fiftieth of the time
def _unscheduled(func: tirx.PrimFunc) -> s_tir.Schedule:
    return rewritten_schedule(func)


def blocks_of(sch: s_tir.Schedule) -> list[SBlockRV]:
    """All blocks under the root, in the order of the program."""
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def is_reduction(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block has a reduction axis."""
    return any(axis.iter_type == REDUCTION for axis in sch.get(block).iter_vars)


def loops_by_axis(sch: s_tir.Schedule, block: SBlockRV) -> list[LoopRV]:
    """The loop of each axis of an unscheduled block; the loops may be nested in another order.

    Raises
    ------
    ScheduleError
        An axis is no loop.
    """
    values = _realize(sch, block).iter_values
    loops = {sch.get(loop).loop_var: loop for loop in sch.get_loops(block)}
    if not all(value in loops for value in values):
        raise ScheduleError("an axis of a block is no loop")
    return [loops[value] for value in values]


def _realize(sch: s_tir.Schedule, block: SBlockRV) -> s_tir.SBlockRealize:
    """A block with its place among the loops."""
    found: list[s_tir.SBlockRealize] = []
    tvm_ffi.structural_walk(sch.mod["main"].body, [(s_tir.SBlockRealize, found.append)], order="pre")
    return next(realize for realize in found if realize.block.same_as(sch.get(block)))


def outputs_of(sch: s_tir.Schedule) -> list[SBlockRV]:
    """The blocks that no other block reads from: they write the function's outputs."""
    return [b for b in blocks_of(sch) if not sch.get_consumers(b)]


def producers_of(sch: s_tir.Schedule, block: SBlockRV) -> list[SBlockRV]:
    """All blocks that `block` depends on, in the order of the program."""
    needed: list[s_tir.SBlock] = []
    pending = [block]
    while pending:
        for producer in sch.get_producers(pending.pop()):
            if not any(sch.get(producer).same_as(n) for n in needed):
                needed.append(sch.get(producer))
                pending.append(producer)
    return [b for b in blocks_of(sch) if any(sch.get(b).same_as(n) for n in needed)]


def one_result(sch: s_tir.Schedule) -> bool:
    """Whether a function has one output, and each of its elements depends on a result of the reduction.

    Padding after the reduction adds elements that do not. Computed under the reduction's loops, as TVM's
    `reverse_compute_at` does it, they would never be written. A function whose sums, or whose padded image, are an
    output beside what becomes of them has two. Nor may anything read the sums backwards: of `sum[11 - i]` TVM's
    `transform_layout` makes other elements.
    """
    params = set(sch.mod["main"].params)
    writers = [b for b in blocks_of(sch) if any(region.source in params for region in sch.get(b).writes)]
    if len(outputs_of(sch)) != 1 or len(writers) != 1:
        return False
    after = [b for block in blocks_of(sch) if is_reduction(sch, block) for b in sch.get_consumers(block)]
    while after:
        block = after.pop()
        if has_branch(sch, block) or _reads_backwards(sch.get(block), params):
            return False
        after += sch.get_consumers(block)
    return True


def _reads_backwards(block: s_tir.SBlock, params: Collection[tirx.Var]) -> bool:
    """Whether an index of what is not a parameter falls where an axis of the block grows."""
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(block.body, [(TensorLoad, loads.append)], order="pre")
    falling: list[Expr] = []

    def product(node: tirx.Mul) -> None:
        falling.extend(factor for factor in (node.a, node.b) if isinstance(factor, tirx.IntImm) and int(factor) < 0)

    def difference(node: tirx.Sub) -> None:
        falling.extend(tirx.analysis.undefined_vars(node.b))

    for load in loads:
        for index in load.indices if load.source not in params else ():
            tvm_ffi.structural_walk(index, [(tirx.Mul, product), (tirx.Sub, difference)], order="pre")
    return bool(falling)


def compute_where_made(sch: s_tir.Schedule, block: SBlockRV, loop: LoopRV, *, keep_unit_loops: bool = False) -> None:
    """Move a block that reads results under the loop that makes them.

    Raises
    ------
    ScheduleError
        It reads results there which other rounds of the loop make: TVM moves all of `y[i] = sum[i % 3]` into each.
    """
    sch.reverse_compute_at(block, loop, preserve_unit_loops=keep_unit_loops)
    stmt = _realize(sch, block)
    loops = {f.loop_var: Range(f.min, f.min + f.extent) for f in map(sch.get, sch.get_loops(block))}
    if not tvm.sym.detect_iter_map(list(stmt.iter_values), loops, stmt.predicate, "bijective").indices:
        raise ScheduleError(f"{stmt.block.name_hint} reads results that its rTask may not have computed")


def calls(sch: s_tir.Schedule, block: SBlockRV) -> list[str]:
    """Names of the intrinsics that a block calls."""
    found: list[str] = []
    tvm_ffi.structural_walk(sch.get(block).body, [(Call, lambda c: found.append(c.op.name))], order="pre")
    return found


def has_branch(sch: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block calls `if_then_else`, as padding does: inlined, it would be in the inner loop."""
    return any(name.endswith("if_then_else") for name in calls(sch, block))
