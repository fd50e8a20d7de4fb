"""Builders of loops in TVM's IR."""

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr

from .space import divisors

INDEX = "int64"
UNROLLED = 48
"""Multiply-adds of an iteration of an innermost loop, at most, where it takes several steps: what counts and compares
is a sixth of the instructions of a step of twelve."""


def number(value: int) -> Expr:
    """An index that is a constant."""
    return tirx.IntImm(INDEX, value)


def loop(extent: int, body: Callable[[Expr], tirx.Stmt], kind: str = "SERIAL") -> tirx.Stmt:
    """A loop. A single iteration is only its body, except in the loop over rTasks."""
    if extent == 1 and kind != "PARALLEL":
        return body(number(0))
    var = tirx.Var("i", INDEX)
    return tirx.For(var, number(0), number(extent), getattr(tirx.ForKind, kind), body(var))


def innermost(extent: int, vectors: int, others: int, step: Callable[[Expr], tirx.Stmt]) -> tirx.Stmt:
    """The innermost loop of a register tile: as many steps in an iteration as divide its extent, up to `UNROLLED`.

    Parameters
    ----------
    extent : int
        Steps of the loop.
    vectors, others : int
        A step multiplies so many vectors with so many broadcast numbers each. Where there is but one vector, LLVM would
        load the numbers of several steps at once, and store accumulators in their place.
    step : callable
    """
    most = UNROLLED // (vectors * others) if vectors > 1 else 1
    steps = max(n for n in divisors(extent) if n <= max(1, most))
    return loop(extent // steps, lambda i: sequence([step(i * steps + n) for n in range(steps)]))


def sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """One statement after the other."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def vectors(extent: int, simd: int, body: Callable[[Expr], tirx.Stmt]) -> list[tirx.Stmt]:
    """Do `body` for each of `extent` elements: in full vectors of `simd` elements, then in one shorter vector."""
    full, rest = divmod(extent, simd)
    statements = []
    if full:
        statements.append(loop(full, lambda v: loop(simd, lambda element: body(v * simd + element), "VECTORIZED")))
    if rest:
        statements.append(loop(rest, lambda element: body(full * simd + element), "VECTORIZED"))
    return statements


def ending(i: Expr, size: int, extent: int) -> Expr:
    """Where the i-th part of some size begins; the last one is moved back to end with the extent."""
    return i * size if extent % size == 0 else tirx.min(i * size, number(extent - size))


def leave_registers() -> tirx.Stmt:
    """Let no vector stay in a register from what is before to what is after, by a call of which LLVM knows nothing.

    Between two loops of an outer one: LLVM loads the constants of the second (those of an exp or erf are some twenty)
    ahead of the outer loop. Beside them the accumulators of the first have not enough registers, and LLVM may choose to
    store those in each iteration. The function is one of the C library that returns an address, and does nothing else.
    """
    return tirx.Evaluate(tirx.call_extern("handle", "__errno_location"))
