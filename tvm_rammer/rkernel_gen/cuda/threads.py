"""Builders of CUDA loops in TVM's IR: blocks, threads, vectors, and loops that nvcc unrolls."""

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr, Range

from ...loads import own_barrier

INDEX = "int64"
"""Type of all indices; TVM narrows it to int32."""

Body = Callable[[Expr], tirx.Stmt]


def number(value: int) -> Expr:
    """An index that is a constant."""
    return tirx.IntImm(INDEX, value)


def block_loop(extent: int, body: Body) -> tirx.Stmt:
    """The loop over rTasks."""
    return _bound(extent, "blockIdx.x", body)


def thread_loop(extent: int, body: Body) -> tirx.Stmt:
    """The loop over the threads of an rTask; nvcc unrolls what is marked within, TVM would write thousands of lines."""

    def marked(thread: Expr) -> tirx.Stmt:
        return tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_unroll_explicit", tirx.IntImm("bool", 0), body(thread))

    return _bound(extent, "threadIdx.x", marked)


def _bound(extent: int, tag: str, body: Body) -> tirx.Stmt:
    var = tirx.Var(tag.replace("Idx.x", ""), INDEX)
    axis = tirx.IterVar(Range(number(0), number(extent)), tirx.Var(tag, INDEX), tirx.IterVar.ThreadIndex, tag)
    return tirx.For(var, number(0), number(extent), tirx.ForKind.THREAD_BINDING, body(var), axis)


def serial(extent: int, body: Body) -> tirx.Stmt:
    """A loop that stays one; a single iteration is only its body."""
    return _loop(extent, "SERIAL", body)


def unrolled(extent: int, body: Body) -> tirx.Stmt:
    """A loop that nvcc unrolls."""
    return _loop(extent, "UNROLLED", body)


def vector(extent: int, body: Body) -> tirx.Stmt:
    """One vector operation for all elements."""
    return _loop(extent, "VECTORIZED", body)


def _loop(extent: int, kind: str, body: Body) -> tirx.Stmt:
    if extent == 1:
        return body(number(0))
    var = tirx.Var("i", INDEX)
    return tirx.For(var, number(0), number(extent), getattr(tirx.ForKind, kind), body(var))


def barrier() -> tirx.Stmt:
    """All threads of the rTask meet, and see what others wrote to shared memory.

    A kernel that has one has all that it needs: those that TVM would add are left out (`loads.barriers`).
    """
    return own_barrier()


def sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """One statement after the other."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))
