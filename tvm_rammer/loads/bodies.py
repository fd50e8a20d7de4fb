"""The body of a plain loop, as the stores that it makes."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from ..define_arithmetic import is_extreme_on_gpu

Guarded = tuple[list[Expr], tirx.BufferStore]
"""A store, and the conditions that it is under."""


class NotPlainError(Exception):
    """A loop does more than to store what it computes."""


def stores_of(body: tirx.Stmt) -> list[Guarded]:
    """The stores of a loop's body; names of values are written out.

    Raises
    ------
    NotPlainError
        The body has loops, calls, or other branches than `if` without `else`.
    """
    return _stores(body, [], {})


def _stores(stmt: tirx.Stmt, conditions: list[Expr], values: dict[tirx.Var, Expr]) -> list[Guarded]:
    match stmt:
        case tirx.SeqStmt():
            return [found for part in stmt.seq for found in _stores(part, conditions, values)]
        case tirx.Bind():
            values[stmt.var] = substituted(stmt.value, values)
            return []
        case tirx.IfThenElse() if stmt.else_case is None:
            return _stores(stmt.then_case, [*conditions, *terms_of(substituted(stmt.condition, values))], values)
        case tirx.BufferStore():
            return [(conditions, substituted(stmt, values))]
    raise NotPlainError


def terms_of(condition: Expr) -> list[Expr]:
    """Conditions of which one is made by `and`."""
    return [*terms_of(condition.a), *terms_of(condition.b)] if isinstance(condition, tirx.And) else [condition]


def is_among(value: Expr, others: Sequence[Expr]) -> bool:
    """Whether an expression is one of some others."""
    return any(tvm_ffi.structural_equal(value, other) for other in others)


def substituted(code: Any, values: Mapping[tirx.Var, Expr]) -> Any:
    """Code with values in the places of variables."""
    return tvm_ffi.structural_map(code, (tirx.Var, lambda v: values.get(v, v)), order="post") if values else code


def loop_over(var: tirx.Var, extent: int, kind: int, body: tirx.Stmt) -> tirx.For:
    """A loop from 0."""
    dtype = str(var.ty.dtype)
    return tirx.For(var, tirx.const(0, dtype), tirx.const(extent, dtype), kind, body)


def joined(conditions: Sequence[Expr]) -> Expr | None:
    """All conditions as one; None where there is none."""
    whole = None
    for condition in conditions:
        whole = condition if whole is None else tirx.And(whole, condition)
    return whole


def loads_of(code: Any) -> list[TensorLoad]:
    """All loads in some code."""
    found: list[TensorLoad] = []
    tvm_ffi.structural_walk(code, [(TensorLoad, found.append)], order="pre")
    return found


def uses(code: Expr, var: tirx.Var) -> bool:
    """Whether an expression depends on a variable."""
    return any(var.same_as(used) for used in tirx.analysis.undefined_vars(code))


def scope_of(buffer: tirx.Var) -> str:
    """The memory that a buffer is in: `global`, `shared`, `local`."""
    return str(buffer.scope())


def is_short(call: Call) -> bool:
    """Whether a call is an instruction or none, and may be made in vain."""
    return operation(call) == "reinterpret" or is_extreme_on_gpu(call)


def operation(call: Call) -> str:
    """The name of an intrinsic without its prefix; empty for a call of a function of the module."""
    return str(getattr(call.op, "name", "")).rpartition(".")[2]
