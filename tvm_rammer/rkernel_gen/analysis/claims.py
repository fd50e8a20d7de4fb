"""What the blocks of a function say of themselves, and schedules believe, is proven here or the function is refused.

TVM's schedule steps rely on it that a block's `T.reads` and `T.writes` name all that it accesses, that different values
of its spatial axes write different elements, and that it runs for each value of its axes. Nobody checks it when a
function is made. `rfactor` drops a block's predicate, and a loop that runs in parallel leaves open which of two writes
to one element is the last.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, Range, TensorLoad, TensorRegion

from .affine import distinct

SPATIAL, REDUCTION = 0, 2
"""`iter_type` of a block's axes."""


@lru_cache(maxsize=256)  # asked for each schedule
def false_claim(func: tirx.PrimFunc) -> str:
    """The first claim of a block that cannot be proven, in words; empty where all can."""
    if not isinstance(func.body, s_tir.SBlockRealize):
        return "the function has no root block"
    root = func.body.block
    leaves = list(_leaves(root.body, ()))
    allocated = [stmt.buffer for stmt, _ in leaves if isinstance(stmt, tirx.AllocBuffer)]
    buffers = [*func.params, *root.alloc_buffers, *allocated]
    for stmt, loops in leaves:
        if isinstance(stmt, tirx.AllocBuffer) and not loops:
            continue
        if not isinstance(stmt, s_tir.SBlockRealize):
            return "the function has other code than loops and blocks"
        flaw = next(_flaws(stmt, loops, buffers), None)
        if flaw:
            return f"the block {stmt.block.name_hint} {flaw}"
    return ""


def _leaves(stmt: tirx.Stmt, loops: tuple[tirx.For, ...]) -> Iterator[tuple[tirx.Stmt, tuple[tirx.For, ...]]]:
    """What is within loops and sequences of a statement, with the loops around it."""
    match stmt:
        case tirx.SeqStmt():
            for part in stmt.seq:
                yield from _leaves(part, loops)
        case tirx.For():
            yield from _leaves(stmt.body, (*loops, stmt))
        case _:
            yield stmt, loops


def _flaws(realize: s_tir.SBlockRealize, loops: Sequence[tirx.For], buffers: Sequence[tirx.Var]) -> Iterator[str]:
    block = realize.block
    if not _runs_once_for_each(realize, loops):
        yield "does not run once for each value of its axes"
    if _holds_blocks(block):
        yield "holds other blocks"
        return
    reads, writes, opaque = s_tir.analysis.get_sblock_access_region(block, {b: b for b in buffers})
    if len(opaque) or block.match_buffers or block.alloc_buffers:
        yield "accesses memory by pointers or other names"
    axes = tvm.sym.Analyzer()
    for axis in block.iter_vars:
        axes.bind(axis.var, axis.dom)
    if not all(any(_contains(claimed, read, axes) for claimed in block.reads) for read in reads):
        yield "reads what its T.reads leaves out"
    if not all(any(_contains(claimed, write, axes) for claimed in block.writes) for write in writes):
        yield "writes what its T.writes leaves out"
    if not all(any(_contains(write, claimed, axes) for write in writes) for claimed in block.writes):
        yield "does not write all of its T.writes"
    yield from _store_flaws(block)


def _runs_once_for_each(realize: s_tir.SBlockRealize, loops: Sequence[tirx.For]) -> bool:
    """Whether a block runs for all values of its axes, and never twice for the same ones.

    Different iterations have different values, all are within the axes' domains, and there are as many.
    """
    axes, values = realize.block.iter_vars, realize.iter_values
    numbers = [n for loop in loops for n in (loop.min, loop.extent)]
    numbers += [n for axis in axes for n in (axis.dom.min, axis.dom.extent)]
    if not all(isinstance(n, tirx.IntImm) for n in numbers):
        return False
    extents = {loop.loop_var: int(loop.extent) for loop in loops}
    if math.prod(extents.values()) != math.prod(int(axis.dom.extent) for axis in axes):
        return False
    ranges = tvm.sym.Analyzer()
    for loop in loops:
        if int(loop.min):
            return False
        ranges.bind(loop.loop_var, Range(loop.min, loop.extent))
    within = all(
        ranges.can_prove(value >= axis.dom.min) and ranges.can_prove(value < axis.dom.min + axis.dom.extent)
        for value, axis in zip(values, axes, strict=True)
    )
    return within and ranges.can_prove(realize.predicate) and distinct(values, extents)


def _holds_blocks(block: s_tir.SBlock) -> bool:
    found: list[s_tir.SBlock] = []
    tvm_ffi.structural_walk(block.body, [(s_tir.SBlock, found.append)], order="pre")
    return bool(found)


def _contains(outer: TensorRegion, inner: TensorRegion, axes: tvm.sym.Analyzer) -> bool:
    """Whether a part of a buffer is proven to contain another one."""
    if not outer.source.same_as(inner.source):
        return False
    return all(
        (a.min.same_as(b.min) and a.extent.same_as(b.extent))
        or tvm_ffi.structural_equal(a, b)
        or (axes.can_prove(a.min <= b.min) and axes.can_prove(b.min + b.extent <= a.min + a.extent))
        or (axes.can_prove(a.min <= 0) and axes.can_prove(a.min + a.extent >= size))
        for a, b, size in zip(outer.region, inner.region, outer.source.shape, strict=True)
    )


def _store_flaws(block: s_tir.SBlock) -> Iterator[str]:
    """Stores that other iterations of the block repeat, or whose buffer it reads elsewhere."""
    stores: list[tirx.BufferStore] = []
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(block.body, [(tirx.BufferStore, stores.append), (TensorLoad, loads.append)], order="pre")
    extents = {axis.var: int(axis.dom.extent) for axis in block.iter_vars if axis.iter_type == SPATIAL}
    for store in stores:
        if not distinct(store.indices, extents):
            yield "may write an element more than once"
        for load in loads:
            if load.source.same_as(store.buffer) and not distinct(_common(load.indices, store.indices), extents):
                yield "reads elements that other iterations write"


def _common(indices: Sequence[Expr], others: Sequence[Expr]) -> list[Expr]:
    """The indices that are the same in two places. Where they determine the iteration, no other one gets there."""
    pairs = zip(indices, others, strict=True)
    return [index for index, other in pairs if tvm_ffi.structural_equal(index, other)]
