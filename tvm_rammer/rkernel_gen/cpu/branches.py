"""Conditional stores become branches, so that TVM can hoist them out of loops that they do not depend on."""

from collections.abc import Callable

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr

from ...loads.bodies import operation
from ..analysis.blocks import SPATIAL
from ..analysis.variables import uses


def branch_stores(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Turn `out[i] = f(if_then_else(c, a, b))` into `if c: out[i] = f(a) else: out[i] = f(b)`.

    A concatenation selects its source by the channel alone. As an expression the selection stays in the
    innermost loop, and LLVM makes masked loads of it: eight times slower than two copies. Within a function `f` only
    the choice by an outer axis is moved (`is_choice`), not the padding of a row.
    """

    def within(block: s_tir.SBlock) -> s_tir.SBlock:
        axes = block.iter_vars
        sums = block.init is not None or any(axis.iter_type != SPATIAL for axis in axes)
        if sums or not axes or not isinstance(block.body, tirx.BufferStore):
            return block
        body = _hoisted(block.body, lambda value: _choice_by(value, axes[-1].var))
        return tvm_ffi.structural_map(block, (tirx.BufferStore, lambda _: body), order="post")

    body = tvm_ffi.structural_map(func.body, (s_tir.SBlock, within), order="post")
    outermost = (tirx.BufferStore, lambda store: _hoisted(store, _outermost))
    return func.with_body(tvm_ffi.structural_map(body, outermost, order="post"))


def _hoisted(store: tirx.BufferStore, condition_of: Callable[[Expr], Expr | None]) -> tirx.Stmt:
    condition = condition_of(store.value)
    if condition is None:
        return store
    then, otherwise = (
        tirx.BufferStore(store.buffer, _decided(store.value, condition, arm), store.indices) for arm in (1, 2)
    )
    return tirx.IfThenElse(condition, _hoisted(then, condition_of), _hoisted(otherwise, condition_of))


def _outermost(value: Expr) -> Expr | None:
    return value.args[0] if isinstance(value, Call) and _is_branch(value) else None


def _choice_by(value: Expr, last: tirx.Var) -> Expr | None:
    """The first choice within a value that does not depend on the last axis."""
    return next((c for c in branch_conditions(value) if is_choice(c) and not uses(c, last)), None)


def branch_conditions(value: Expr | tirx.Stmt) -> list[Expr]:
    """The conditions of all `if_then_else` in an expression or a statement, the outer ones first."""
    found: list[Expr] = []

    def visit(call: Call) -> None:
        if _is_branch(call):
            found.append(call.args[0])

    tvm_ffi.structural_walk(value, [(Call, visit)], order="pre")
    return found


def is_choice(condition: Expr) -> bool:
    """Whether a condition compares an axis with a number, as that of a concatenation's part: a loop is split there."""
    if not isinstance(condition, tirx.LT | tirx.LE | tirx.GT | tirx.GE):
        return False
    return {type(side) for side in (condition.a, condition.b)} == {tirx.Var, tirx.IntImm}


def _decided(value: Expr, condition: Expr, arm: int) -> Expr:
    """A value where a condition is known: arm 1 where it holds, 2 where it does not."""

    def choose(call: Call) -> Expr:
        same = _is_branch(call) and tvm_ffi.structural_equal(call.args[0], condition)
        return call.args[arm] if same else call

    return tvm_ffi.structural_map(value, (Call, choose), order="post")


def _is_branch(call: Call) -> bool:
    return operation(call) == "if_then_else"
