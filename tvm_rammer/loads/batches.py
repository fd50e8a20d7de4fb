"""Loops in which the loads of several iterations come before their stores.

    for n in 0 .. 16:                    for batch in 0 .. 2:
        if inside(n):                        for u in 0 .. 8: loaded[u] = image[inside(n) ? at(n) : 0]
            tile[n] = image[at(n)]           for u in 0 .. 8: if inside(n): tile[n] = loaded[u]

nvcc does not move a load before a store, since both might be of the same memory, nor out of an `if`. So one load at a
time was under way. Here it is known that a loop stores to none of the buffers that it loads from: two parameters of an
rTask are never the same memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from .bodies import (
    Guarded,
    NotPlainError,
    is_among,
    is_short,
    joined,
    loads_of,
    loop_over,
    operation,
    scope_of,
    stores_of,
    substituted,
    uses,
)

MAX_BATCH = 16
"""Iterations whose loads are under way together, at most."""

MAX_REGISTERS = 32
"""Registers of a thread that hold what is loaded in advance, at most."""

MAX_CALLS = 4
"""Calls, such as exponentials, in the code of a batch, at most, beside those of a single iteration: they are long."""


@dataclass(slots=True)
class _Load:
    """A load that is made in advance; `var` stands for it until it has a register.

    `conditions` hold where its index is one of the buffer.
    """

    var: tirx.Var
    load: TensorLoad
    conditions: list[Expr] = field(default_factory=list)


def batch_loads(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Rewrite all innermost loops that load from memory and store there, or add up.

    Parameters
    ----------
    func : tirx.PrimFunc
        A device function, lowered by TVM; its parameters do not overlap.
    """
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, _batched), order="post"))


def _batched(loop: tirx.For) -> tirx.Stmt:
    try:
        stores = stores_of(loop.body)
    except NotPlainError:
        return loop
    if loop.kind not in (tirx.ForKind.SERIAL, tirx.ForKind.UNROLLED) or not isinstance(loop.extent, tirx.IntImm):
        return loop
    copies = all(scope_of(store.buffer) == "local" for _, store in stores)
    if loop.kind == tirx.ForKind.UNROLLED and copies and not any(conditions for conditions, _ in stores):
        return loop  # nvcc moves these loads itself
    try:
        return with_loads_ahead(loop, stores)
    except NotPlainError:
        return loop


def with_loads_ahead(loop: tirx.For, stores: Sequence[Guarded], for_loads: Sequence[Expr] = ()) -> tirx.Stmt:
    """A loop whose loads come before its stores, in batches.

    Parameters
    ----------
    loop : tirx.For
    stores : sequence of Guarded
        What its body does.
    for_loads : sequence of Expr
        Conditions that only loads need: what is stored without them is not read.

    Raises
    ------
    NotPlainError
        It loads nothing that can be loaded earlier, or one batch would be one iteration.
    """
    stored = [store.buffer for _, store in stores]
    loads: list[_Load] = []
    rest = [
        ([c for c in conditions if not is_among(c, for_loads)], _without_loads(store, conditions, stored, loads))
        for conditions, store in stores
    ]
    size = _batch_size(loop, loads, stores)
    if not loads or size < 2:
        raise NotPlainError
    batches = -(-int(loop.extent) // size)
    batch = tirx.Var("batch", loop.loop_var.ty)
    body = _batch(loop, batch * size if batches > 1 else loop.min, size, loads, rest)
    return body if batches == 1 else loop_over(batch, batches, tirx.ForKind.SERIAL, body)


def _batch(loop: tirx.For, first: Expr, size: int, loads: Sequence[_Load], rest: Sequence[Guarded]) -> tirx.Stmt:
    """The loads of `size` iterations, then what is computed of them."""
    registers = {one.var: tirx.decl_buffer((size,), str(one.load.ty.dtype), "ahead", scope="local") for one in loads}
    end = [] if int(loop.extent) % size == 0 else [loop.loop_var < loop.min + loop.extent]

    def unrolled(body: Callable[[tirx.Var], tirx.Stmt]) -> tirx.Stmt:
        u = tirx.Var("u", loop.loop_var.ty)
        known = {loop.loop_var: first + u} | {var: buffer[u] for var, buffer in registers.items()}
        return loop_over(u, size, tirx.ForKind.UNROLLED, substituted(body(u), known))

    def load(one: _Load, u: tirx.Var) -> tirx.Stmt:
        holds = joined([*one.conditions, *end])
        places = [_clamped(index, holds) for index in one.load.indices]
        value = one.load.source[tuple(places)] if len(places) > 1 else one.load.source[places[0]]
        return tirx.BufferStore(registers[one.var], value, [u])

    made = []
    for conditions, stmt in rest:
        guard = joined([*conditions, *end])
        made.append(stmt if guard is None else tirx.IfThenElse(guard, stmt, None))
    compute = made[0] if len(made) == 1 else tirx.SeqStmt(made)
    arrays = [tirx.AllocBuffer(buffer) for buffer in registers.values()]
    return tirx.SeqStmt([*arrays, *(unrolled(partial(load, one)) for one in loads), unrolled(lambda _: compute)])


def _batch_size(loop: tirx.For, loads: Sequence[_Load], stores: Sequence[Guarded]) -> int:
    """How many iterations are a batch: as many as registers allow, shared out evenly."""
    lanes = sum(_lanes(one.load) for one in loads if any(uses(i, loop.loop_var) for i in one.load.indices))
    expensive = sum(long_calls(store) for _, store in stores)
    most = min(MAX_BATCH, MAX_REGISTERS // max(1, lanes), MAX_CALLS // expensive if expensive else MAX_BATCH)
    extent = int(loop.extent)
    return -(-extent // -(-extent // most)) if most > 1 else 1


def long_calls(store: tirx.BufferStore) -> int:
    """Calls, such as exponentials, in what is stored."""
    calls: list[Call] = []
    tvm_ffi.structural_walk(store.value, [(Call, calls.append)], order="pre")
    return sum(operation(call) != "if_then_else" and not is_short(call) for call in calls)


def _without_loads(
    store: tirx.BufferStore, conditions: list[Expr], stored: Sequence[tirx.Var], loads: list[_Load]
) -> tirx.BufferStore:
    """The store of a value in which variables stand for loads from memory."""
    if any(loads_of(condition) for condition in conditions) or any(loads_of(index) for index in store.indices):
        raise NotPlainError
    bound: list[tirx.Var] = []
    flaws: list[Expr] = []  # an exception would not pass through TVM
    tvm_ffi.structural_walk(store.value, [(tirx.Let, lambda let: bound.append(let.var))], order="pre")

    def load(node: TensorLoad) -> Expr:
        scope = scope_of(node.source)
        if scope in ("local", "shared", "shared.dyn"):
            return node
        used = {v for index in node.indices for v in tirx.analysis.undefined_vars(index)}
        is_stored = any(node.source.same_as(buffer) for buffer in stored)
        chained = any(loads_of(index) for index in node.indices)
        if scope != "global" or is_stored or chained or used & {*bound, *(one.var for one in loads)}:
            flaws.append(node)
        loads.append(_Load(tirx.Var("loaded", node.ty), node, list(conditions)))
        return loads[-1].var

    def choice(call: Call) -> Expr:
        if operation(call) != "if_then_else":
            return call
        condition, *arms = call.args
        advanced = {one.var for one in loads}
        for arm, holds in zip(arms, (condition, tirx.Not(condition)), strict=True):
            used = set(tirx.analysis.undefined_vars(arm)) & advanced
            if used and (loads_of(condition) or set(tirx.analysis.undefined_vars(condition)) & {*advanced, *bound}):
                flaws.append(call)
            for one in loads:
                if one.var in used:
                    one.conditions.append(holds)
        return call

    value = tvm_ffi.structural_map(store.value, [(TensorLoad, load), (Call, choice)], order="post")
    if flaws:
        raise NotPlainError
    return tirx.BufferStore(store.buffer, value, store.indices)


def _clamped(index: Expr, holds: Expr | None) -> Expr:
    if holds is None:
        return index
    if isinstance(index, tirx.Ramp):
        return tirx.Ramp(_clamped(index.base, holds), index.stride, index.lanes)
    return tirx.if_then_else(holds, index, tirx.const(0, str(index.ty.dtype)))


def _lanes(load: TensorLoad) -> int:
    return int(str(load.ty.dtype).partition("x")[2] or 1)
