"""Loops of one function that go along the same rows become one loop: a row stays in the cache from step to step.

A softmax reads its rows four times, and an image that was filtered is read for its bias. What only such a row holds is
memory of one row.
"""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ....loads.bodies import substituted
from ...bindings import rewrite_prim_funcs, with_root_body
from ...module_pass import module_pass
from .loops import in_order
from .nests import accesses, axes_at, is_code, is_serial, nest_of, parts, statements_of
from .spread_rounds import spread


def JoinLoops() -> tvm.transform.Pass:
    """Make the pass; it works on functions in blocks that nobody scheduled, behind all that looks for blocks."""
    return _join_loops


@module_pass("JoinLoops")
def _join_loops(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_prim_funcs(mod, _rewritten)


def _rewritten(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    statements = statements_of(func)
    nests = [nest_of(statement) for statement in statements]
    if not any(nests):
        return None
    joined = _joined([nest.code() if nest else each for nest, each in zip(nests, statements, strict=True)])
    kept = list(func.body.block.alloc_buffers)
    made = []
    for statement in joined:
        rows = [buffer for buffer in kept if _is_of_one(statement, buffer, joined)]
        kept = [buffer for buffer in kept if buffer not in rows]
        made += spread(_with_rows(statement, rows))
    # Not of the block: of a buffer that loops without blocks use, TVM would tell anew how much of it they need.
    return with_root_body(func, [*map(tirx.AllocBuffer, kept), *made], [])


def _joined(statements: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
    """The statements, with those loops as one that may be."""
    made: list[tirx.Stmt] = []
    for statement in statements:
        if made and (both := _as_one(made[-1], statement)) is not None:
            made[-1] = both
        else:
            made.append(statement)
    return made


def _as_one(one: tirx.Stmt, other: tirx.Stmt) -> tirx.Stmt | None:
    """Two loops as one, if the second reads what the first wrote, each round what the same round did."""
    if not all(isinstance(each, tirx.For) and is_serial(each) and is_code(each) for each in (one, other)):
        return None
    if not tvm_ffi.structural_equal(one.extent, other.extent):
        return None
    (read, written), (read_later, written_later) = accesses(one), accesses(other)
    made = {buffer for buffer, _ in written}
    if made.isdisjoint(buffer for buffer, _ in read_later):
        return None
    for buffer in made | {buffer for buffer, _ in written_later}:
        before = [access for access in read + written if access[0].same_as(buffer)]
        behind = [access for access in read_later + written_later if access[0].same_as(buffer)]
        if before and behind and not axes_at(before, one.loop_var) & axes_at(behind, other.loop_var):
            return None
    body = _joined([*parts(one.body), *parts(substituted(other.body, {other.loop_var: one.loop_var}))])
    return tirx.For(one.loop_var, one.min, one.extent, one.kind, in_order(body))


def _is_of_one(statement: tirx.Stmt, buffer: tirx.Var, statements: Sequence[tirx.Stmt]) -> bool:
    """Whether a loop alone uses a buffer, of which each round has a part of its own that has a known size."""
    if not isinstance(statement, tirx.For) or not is_serial(statement):
        return False
    for each in statements:
        read, written = accesses(each)
        found = [access for access in read + written if access[0].same_as(buffer)]
        if each.same_as(statement):
            axes = axes_at(found, statement.loop_var) if found else set[int]()
            others = [size for axis, size in enumerate(buffer.shape) if axis != min(axes, default=-1)]
            if not axes or not all(isinstance(size, tirx.IntImm) for size in others):
                return False
        elif found:
            return False
    return True


def _with_rows(statement: tirx.Stmt, buffers: Sequence[tirx.Var]) -> tirx.Stmt:
    """A loop with memory for one round in the place of buffers for all."""
    if not buffers or not isinstance(statement, tirx.For):
        return statement
    read, written = accesses(statement)
    rows: dict[tirx.Var, tuple[tirx.Var, int]] = {}
    for buffer in buffers:
        axis = min(axes_at([access for access in read + written if access[0].same_as(buffer)], statement.loop_var))
        shape = [1 if n == axis else size for n, size in enumerate(buffer.shape)]
        rows[buffer] = tirx.decl_buffer(shape, str(buffer.dtype), buffer.name), axis

    def place(indices: Sequence[Expr], axis: int) -> list[Expr]:
        return [tirx.IntImm("int64", 0) if n == axis else index for n, index in enumerate(indices)]

    def load(node: TensorLoad) -> Expr:
        row = rows.get(node.source)
        return tirx.BufferLoad(row[0], place(node.indices, row[1])) if row else node

    def store(node: tirx.BufferStore) -> tirx.Stmt:
        row = rows.get(node.buffer)
        return tirx.BufferStore(row[0], node.value, place(node.indices, row[1])) if row else node

    body = tvm_ffi.structural_map(statement.body, [(TensorLoad, load), (tirx.BufferStore, store)], order="post")
    allocated = [tirx.AllocBuffer(row) for row, _ in rows.values()]
    return tirx.For(
        statement.loop_var, statement.min, statement.extent, statement.kind, in_order([*allocated, *parts(body)])
    )
