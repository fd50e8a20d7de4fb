"""Loops of TVM's IR, written directly."""

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr

INDEX = "int64"


def number(value: int) -> Expr:
    """An index that is a constant."""
    return tirx.IntImm(INDEX, value)


def loop(extent: int, body: Callable[[Expr], tirx.Stmt], kind: str = "SERIAL") -> tirx.Stmt:
    """A loop; of a single iteration only its body, unless that is an rTask."""
    if extent == 1 and kind != "PARALLEL":
        return body(number(0))
    var = tirx.Var("i", INDEX)
    return tirx.For(var, number(0), number(extent), getattr(tirx.ForKind, kind), body(var))


def sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """One statement after the other."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def vectors(extent: int, lanes: int, body: Callable[[Expr], tirx.Stmt]) -> list[tirx.Stmt]:
    """Do `body` for each of `extent` elements: whole vectors, then the rest as one shorter vector."""
    whole, rest = divmod(extent, lanes)
    made = []
    if whole:
        made.append(loop(whole, lambda v: loop(lanes, lambda lane: body(v * lanes + lane), "VECTORIZED")))
    if rest:
        made.append(loop(rest, lambda lane: body(whole * lanes + lane), "VECTORIZED"))
    return made
