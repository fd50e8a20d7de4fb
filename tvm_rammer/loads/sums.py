"""Sums that a loop keeps in memory, although it writes one element only: they are kept in a register instead.

    for n: if n == 0: out[i] = 0;  out[i] = out[i] + part[n]

becomes

    for n: if n == 0: sum = 0;  sum = sum + part[n]
    out[i] = sum

nvcc cannot do it: what is stored might be what is loaded next. Each pass would wait for the memory twice.
"""

from collections.abc import Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from .bodies import Guarded, NotPlainError, joined, loads_of, scope_of, stores_of, uses


def keep_sums(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Rewrite all innermost loops that compute one element of memory, from its first value on.

    Parameters
    ----------
    func : tirx.PrimFunc
        A device function, lowered by TVM.
    """
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, _kept), order="post"))


def _kept(loop: tirx.For) -> tirx.Stmt:
    try:
        stores = stores_of(loop.body)
    except NotPlainError:
        return loop
    if len(stores) < 2 or not _is_one_element(loop, stores) or not _begins_anew(loop, stores[0]):
        return loop
    always = [c for c in stores[-1][0] if not uses(c, loop.loop_var)]
    element, place = stores[0][1].buffer, stores[0][1].indices
    register = tirx.decl_buffer((1,), str(element.dtype), "sum", scope="local")

    def load(node: TensorLoad) -> Expr:
        return register[0] if node.source.same_as(element) else node

    body = []
    for conditions, store in stores:
        value = tvm_ffi.structural_map(store.value, (TensorLoad, load), order="post")
        kept = tirx.BufferStore(register, value, [0])
        own = joined([c for c in conditions if not any(tvm_ffi.structural_equal(c, a) for a in always)])
        body.append(kept if own is None else tirx.IfThenElse(own, kept, None))
    inner = tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, tirx.SeqStmt(body))
    whole = tirx.SeqStmt([tirx.AllocBuffer(register), inner, tirx.BufferStore(element, register[0], place)])
    guard = joined(always)
    return whole if guard is None else tirx.IfThenElse(guard, whole, None)


def _is_one_element(loop: tirx.For, stores: Sequence[Guarded]) -> bool:
    """Whether all stores, and all loads from their buffer, are of the same element of memory in all passes."""
    first = stores[0][1]
    if scope_of(first.buffer) == "local" or any(uses(index, loop.loop_var) for index in first.indices):
        return False
    for conditions, store in stores:
        if not store.buffer.same_as(first.buffer) or not _same(store.indices, first.indices):
            return False
        if any(loads_of(code) for code in (*conditions, *store.indices)):
            return False
        own = [load for load in loads_of(store.value) if load.source.same_as(first.buffer)]
        if not all(_same(load.indices, first.indices) for load in own):
            return False
    return True


def _begins_anew(loop: tirx.For, first: Guarded) -> bool:
    """Whether the first store is made in the first pass, under what holds for all, and does not read the element."""
    conditions, store = first
    moving = [c for c in conditions if uses(c, loop.loop_var)]
    is_first = len(moving) == 1 and isinstance(moving[0], tirx.EQ) and moving[0].a.same_as(loop.loop_var)
    return is_first and isinstance(moving[0].b, tirx.IntImm) and moving[0].b.value == 0 and not loads_of(store.value)


def _same(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
    return all(tvm_ffi.structural_equal(a, b) for a, b in zip(first, second, strict=True))
