"""Loads without branches between them, so that all of a thread's are under way at once.

TVM writes a padded element as `if (inside) value = image[at]; else value = 0;`, with `&&` between the terms of the
condition. nvcc makes branches of both, and what is loaded after a branch waits for what was loaded before it. Here
the element is loaded in any case, at a clamped address, and the padding is selected afterwards; the terms of a
condition are joined by `&`, which computes all of them.

    if_then_else(a && b, image[at], 0)
    holds = a & b; loaded = image[holds ? at : 0]; holds ? loaded : 0

It comes after TVM's simplifier, which would take the address for clamped already where the condition holds.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from .bodies import is_short, operation, scope_of

MAX_LOADS = 4
"""Loads of an expression that are made in any case, at most: each costs an issue slot where it is not needed."""


def overlap_loads(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Rewrite choices between elements, and conditions of several terms, where computing all of them is safe and cheap.

    Parameters
    ----------
    func : tirx.PrimFunc
        A device function on which no simplifying pass will run. Each of its buffers has an element 0.
    """
    return func.with_body(
        tvm_ffi.structural_map(func.body, [(Call, _choice), (tirx.IfThenElse, _branch)], order="post")
    )


def _choice(call: Call) -> Expr:
    if operation(call) != "if_then_else":
        return call
    condition, then, otherwise = call.args
    if _is_vector(call) or not _is_pure(condition) or _cost(then) + _cost(otherwise) > MAX_LOADS:
        return call
    holds = tirx.Var("holds", condition.ty)
    loads: list[tuple[tirx.Var, Expr]] = []
    arms = [_named(_loaded(arm, holds, when, loads), loads) for arm, when in ((then, True), (otherwise, False))]
    value = tirx.Select(holds, *arms)
    for var, bound in reversed([(holds, _joined(condition)), *_in_order(loads)]):
        value = tirx.Let(var, bound, value)
    return value


def _named(arm: Expr, bound: list[tuple[tirx.Var, Expr]]) -> Expr:
    """A variable for an arm that must be computed, so that it is computed in any case."""
    if isinstance(arm, tirx.Var | tirx.IntImm | tirx.FloatImm):
        return arm
    bound.append((tirx.Var("arm", arm.ty), arm))
    return bound[-1][0]


def _in_order(bound: list[tuple[tirx.Var, Expr]]) -> list[tuple[tirx.Var, Expr]]:
    """The same variables, each after those that its value is computed of."""
    ordered: list[tuple[tirx.Var, Expr]] = []
    pending = list(bound)
    while pending:
        names = {var for var, _ in pending}
        ready = [(var, value) for var, value in pending if not names & set(tirx.analysis.undefined_vars(value))]
        ordered += ready
        pending = [pair for pair in pending if not any(pair[0].same_as(var) for var, _ in ready)]
    return ordered


def _branch(branch: tirx.IfThenElse) -> tirx.Stmt:
    if not _is_pure(branch.condition):
        return branch
    return tirx.IfThenElse(_joined(branch.condition), branch.then_case, branch.else_case)


def _joined(condition: Expr) -> Expr:
    """The same condition with all its terms computed."""
    for short, full in ((tirx.And, tirx.BitwiseAnd), (tirx.Or, tirx.BitwiseOr)):
        if isinstance(condition, short):
            return full(_joined(condition.a), _joined(condition.b))
    return condition


def _loaded(value: Expr, holds: Expr, when: bool, bound: list[tuple[tirx.Var, Expr]]) -> Expr:
    """The same value where the condition is `when`; elsewhere its loads are of the first element of their buffers.

    Its loads and their indices become variables, which are appended to `bound` with those of inner choices: as parts
    of a choice in C, nvcc would compute them behind a branch again.
    """

    def named(name: str, expr: Expr) -> tirx.Var:
        var = tirx.Var(name, expr.ty)
        bound.append((var, expr))
        return var

    def load(node: TensorLoad) -> Expr:
        if scope_of(node.source) == "local":  # registers have no addresses
            return node
        safe = []
        for index in node.indices:
            pair = named("at", index), tirx.const(0, str(index.ty.dtype))
            safe.append(tirx.Select(holds, *(pair if when else reversed(pair))))
        return named("loaded", node.source[tuple(safe)] if len(safe) > 1 else node.source[safe[0]])

    def let(node: tirx.Let) -> Expr:
        bound.append((node.var, node.value))
        return node.body

    return tvm_ffi.structural_map(value, [(TensorLoad, load), (tirx.Let, let)], order="post")


def _is_vector(value: Expr) -> bool:
    return "x" in str(value.ty.dtype)


def _is_pure(condition: Expr) -> bool:
    """Whether all terms of a condition may be computed, whatever the others are: none loads, divides by an unknown
    number, or calls anything."""
    return _cost(condition) == 0


def _cost(value: Expr) -> int:
    """Loads of an expression; more than allowed where it does what is not to be done in vain."""
    loads = 0

    def load(node: TensorLoad) -> None:
        nonlocal loads
        if scope_of(node.source) != "local":
            loads += 1 if not any(_is_vector(index) for index in node.indices) else MAX_LOADS + 1

    def call(node: Call) -> None:
        nonlocal loads
        loads += 0 if is_short(node) else MAX_LOADS + 1

    def quotient(node: tirx.Div | tirx.Mod) -> None:
        nonlocal loads
        constant = isinstance(node.b, tirx.IntImm) and node.b.value != 0
        loads += 0 if constant or "float" in str(node.ty.dtype) else MAX_LOADS + 1

    visits = [(TensorLoad, load), (Call, call), (tirx.Div, quotient), (tirx.Mod, quotient)]
    tvm_ffi.structural_walk(value, visits, order="pre")
    return loads
