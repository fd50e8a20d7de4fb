"""Iterations of a loop side by side that have loops of their own: unroll and jam.

    for j in 0 .. 6:                               for group in 0 .. 2:
        best[0] = -inf                                 for each j of three: best_j[0] = -inf
        for t in 0 .. 9:                               for t in 0 .. 9:
            best[0] = max(best[0], x[at(j, t)])            for each j of three: best_j[0] = max(best_j[0], x[at(j, t)])
        y[j] = best[0]                                 for each j of three: y[j] = best_j[0]

A thread that pools has few loads in an iteration, and the next iteration's come after a store: each iteration would
wait for memory. A group that has more places than there are iterations computes the last one again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from .batches import MAX_BATCH, MAX_CALLS, MAX_REGISTERS, long_calls, with_loads_ahead
from .bodies import Guarded, NotPlainError, is_among, loads_of, loop_over, scope_of, stores_of, substituted


def jam_loops(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Put iterations side by side in the loops that compute in plain loops, and then store to memory.

    Parameters
    ----------
    func : tirx.PrimFunc
        A device function, lowered by TVM; its parameters do not overlap.
    """

    def jammed(loop: tirx.For) -> tirx.Stmt:
        try:
            return _jammed(loop, func.body)
        except NotPlainError:
            return loop

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, jammed), order="post"))


def _jammed(loop: tirx.For, whole: tirx.Stmt) -> tirx.Stmt:
    parts = _parts(loop.body)
    if loop.kind != tirx.ForKind.SERIAL or not any(isinstance(part, tirx.For) for part in parts):
        raise NotPlainError
    stores = [_stores_of_nest(part) for part in parts]
    _check_results_are_last(stores)
    arrays, always = _arrays_of_an_iteration(loop, [store for part in stores for store in part], whole)
    size = _group_size(loop, parts)
    groups = -(-int(loop.extent) // size)
    group = tirx.Var("group", loop.loop_var.ty)
    places: list[Expr] = [group * size + n if groups > 1 else tirx.const(n, str(group.ty.dtype)) for n in range(size)]
    if int(loop.extent) % size:
        places = [tirx.min(place, loop.extent - 1) for place in places]
    names = [*arrays, *_defined(loop.body)]
    copies = [{loop.loop_var: place} | {var: tirx.Var(var.name, var.ty) for var in names} for place in places]
    for_loads = [substituted(term, copy) for term in always for copy in copies]
    allocated = [tirx.AllocBuffer(copy[array]) for copy in copies for array in arrays]
    body = _sequence([*allocated, *(stmt for part in parts for stmt in _side_by_side(part, copies, for_loads))])
    return body if groups == 1 else loop_over(group, groups, loop.kind, body)


def _side_by_side(
    part: tirx.Stmt, copies: Sequence[Mapping[tirx.Var, Expr]], for_loads: Sequence[Expr]
) -> Iterator[tirx.Stmt]:
    """A part of the body for all iterations of a group; they share its loops."""
    if not isinstance(part, tirx.For):
        yield from (substituted(part, copy) for copy in copies)
        return
    inner = _parts(part.body)
    body = _sequence([stmt for one in inner for stmt in _side_by_side(one, copies, for_loads)])
    together = loop_over(part.loop_var, int(part.extent), part.kind, body)
    is_nest = any(isinstance(one, tirx.For) for one in inner)
    yield together if is_nest else with_loads_ahead(together, stores_of(body), for_loads)


def _sequence(parts: Sequence[tirx.Stmt]) -> tirx.Stmt:
    return tirx.SeqStmt(parts) if len(parts) > 1 else parts[0]


def _parts(body: tirx.Stmt) -> list[tirx.Stmt]:
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _stores_of_nest(part: tirx.Stmt) -> list[Guarded]:
    """The stores of a part of the body, in the order of their first pass."""
    if isinstance(part, tirx.Bind | tirx.AllocBuffer):
        return []
    if not isinstance(part, tirx.For):
        return stores_of(part)
    if not isinstance(part.extent, tirx.IntImm) or not _is_zero(part.min):
        raise NotPlainError
    inner = _parts(part.body)
    if any(isinstance(one, tirx.For) for one in inner):
        return [store for one in inner for store in _stores_of_nest(one)]
    return stores_of(part.body)


def _check_results_are_last(stores: Sequence[Sequence[Guarded]]) -> None:
    """All that is stored to memory is stored after what is computed, and not read by it."""
    to_memory = [[scope_of(store.buffer) != "local" for _, store in part] for part in stores if part]
    kinds = [any(part) for part in to_memory]
    memory = [store.buffer for part in stores for _, store in part if scope_of(store.buffer) != "local"]
    read = [load.source for part in stores for conditions, store in part for load in _read(conditions, store)]
    mixed = any(any(part) and not all(part) for part in to_memory)
    if mixed or kinds != sorted(kinds) or not memory or any(a.same_as(b) for a in memory for b in read):
        raise NotPlainError


def _read(conditions: Sequence[Expr], store: tirx.BufferStore) -> list[TensorLoad]:
    return loads_of([*conditions, store.value, *store.indices])


def _arrays_of_an_iteration(
    loop: tirx.For, stores: Sequence[Guarded], whole: tirx.Stmt
) -> tuple[list[tirx.Var], list[Expr]]:
    """The arrays that the loop's iterations store to, each from a first value on; and what holds wherever one is used,
    and need not hold: nothing but loads of global memory, which are clamped, would be out of bounds elsewhere.

    Raises
    ------
    NotPlainError
        An iteration might read what another one, or code behind the loop, is to find there.
    """
    found: dict[tirx.Var, list[Expr]] = {}
    inside = _defined(loop.body)
    inner: list[tirx.Var] = []
    tvm_ffi.structural_walk(loop.body, [(tirx.For, lambda one: inner.append(one.loop_var))], order="pre")
    for _, store in stores:
        array = store.buffer
        if scope_of(array) != "local" or array in found:
            continue
        is_own = any(array.same_as(one) for one in inside) or _count(array, whole) == _count(array, loop)
        if not is_own or math.prod(int(extent) for extent in array.shape) != 1:
            raise NotPlainError
        found[array] = _conditions_of_use(array, stores, inner)
    if not found:
        raise NotPlainError
    read = [load.source for conditions, store in stores for load in _read(conditions, store)]
    only_global = all(scope_of(source) == "global" or source in found for source in read)
    first, *others = found.values() if only_global else [[]]
    always = [term for term in first if all(is_among(term, terms) for terms in others)]
    return [array for array in found if not any(array.same_as(one) for one in inside)], always


def _conditions_of_use(array: tirx.Var, stores: Sequence[Guarded], loops: Sequence[tirx.Var]) -> list[Expr]:
    """The conditions under which an iteration stores a first value to an array, and all under which it uses it."""
    users = [(conditions, store) for conditions, store in stores if _uses(array, conditions, store)]
    conditions, first = users[0]
    if not first.buffer.same_as(array) or any(one.source.same_as(array) for one in _read(conditions, first)):
        raise NotPlainError
    always = [term for term in conditions if not _is_first_pass(term, loops)]
    if not all(is_among(term, others) for others, _ in users for term in always):
        raise NotPlainError
    return always


def _is_first_pass(term: Expr, loops: Sequence[tirx.Var]) -> bool:
    """Whether a condition is that one of some loops is at its beginning."""
    return isinstance(term, tirx.EQ) and _is_zero(term.b) and any(term.a.same_as(var) for var in loops)


def _is_zero(value: Expr) -> bool:
    return isinstance(value, tirx.IntImm) and value.value == 0


def _uses(array: tirx.Var, conditions: Sequence[Expr], store: tirx.BufferStore) -> bool:
    return store.buffer.same_as(array) or any(load.source.same_as(array) for load in _read(conditions, store))


def _count(array: tirx.Var, code: tirx.Stmt) -> int:
    """How often some code loads from an array or stores to it."""
    found: list[bool] = []
    visits = [(TensorLoad, lambda load: found.append(load.source.same_as(array))),
              (tirx.BufferStore, lambda store: found.append(store.buffer.same_as(array)))]  # fmt: skip
    tvm_ffi.structural_walk(code, visits, order="pre")
    return sum(found)


def _defined(code: tirx.Stmt) -> list[tirx.Var]:
    """Names and arrays that some code defines, loop variables apart."""
    found: list[tirx.Var] = []
    visits = [(tirx.Bind, lambda bind: found.append(bind.var)),
              (tirx.Let, lambda let: found.append(let.var)),
              (tirx.AllocBuffer, lambda node: found.append(node.buffer))]  # fmt: skip
    tvm_ffi.structural_walk(code, visits, order="pre")
    return found


def _group_size(loop: tirx.For, parts: Sequence[tirx.Stmt]) -> int:
    """Iterations of a group: as many as registers allow for what is loaded together, shared out evenly."""
    if not isinstance(loop.extent, tirx.IntImm) or not _is_zero(loop.min):
        raise NotPlainError
    batches: list[int] = []

    def innermost(inner: tirx.For) -> None:
        body = _parts(inner.body)
        if not any(isinstance(part, tirx.For) for part in body):
            read = [load.source for _, store in stores_of(inner.body) for load in loads_of(store)]
            loads = sum(scope_of(source) == "global" for source in read)
            batches.append(min(int(inner.extent), MAX_BATCH) * loads)

    tvm_ffi.structural_walk(list(parts), [(tirx.For, innermost)], order="pre")
    calls = sum(long_calls(store) for part in parts for _, store in _stores_of_nest(part))
    most = min(MAX_REGISTERS // max(1, *batches), MAX_CALLS // calls if calls else MAX_BATCH)
    if most < 2 or int(loop.extent) < 2:
        raise NotPlainError
    return -(-int(loop.extent) // -(-int(loop.extent) // most))
