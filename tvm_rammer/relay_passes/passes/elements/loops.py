"""Loops as code."""

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr

from ....kernel import SPREAD

Places = dict[tirx.Var, Expr]
"""Where the axes of a block are."""


def loop(
    extent: Expr | int, body: Callable[[Expr], tirx.Stmt], kind: str = "SERIAL", *, spread: bool = False
) -> tirx.Stmt:
    """A loop from 0; `spread`: its rounds may be shared by workers."""
    var = tirx.Var("i", "int64")
    begin, count = tirx.IntImm("int64", 0), tirx.IntImm("int64", extent) if isinstance(extent, int) else extent
    marks = {SPREAD: True} if spread else {}
    return tirx.For(var, begin, count, getattr(tirx.ForKind, kind), body(var), annotations=marks)


def nested(axes: Sequence[tirx.IterVar], at: Places, body: Callable[[Places], tirx.Stmt]) -> tirx.Stmt:
    """Loops over axes of a block, around what is made of where they are."""
    if not axes:
        return body(at)
    first, *others = axes
    return loop(first.dom.extent, lambda i: nested(others, at | {first.var: i}, body))


def in_order(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Statements as one."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))
