"""Loops whose rounds depend on nothing of each other, and are worth waking somebody for, are shared by the workers."""

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr

from ....kernel import SPREAD
from ....loads.bodies import substituted
from .merge_loops import merged
from .nests import accesses, axes_at, is_code, is_serial, parts, single_nest

LEAST_SPREAD = 1 << 16
"""Elements from which on a loop is spread over the workers."""
CHUNK = 4096
"""Elements of a round, where a loop has rounds of one."""


def spread(statement: tirx.Stmt) -> list[tirx.Stmt]:
    """A statement with fewer loops, the outermost marked with the number of rounds from which on workers may walk it.

    Of single elements a loop becomes one of many at a time, and one of the rest.
    """
    independent = _are_independent(statement)
    made = merged(statement)
    if not independent:
        return [made]
    if isinstance(made.body, tirx.BufferStore):
        full, rest = _in_chunks(made)
        return [_marked(full), rest]
    return [_marked(made)]


def _marked(loop: tirx.For) -> tirx.For:
    least = max(2, -(-LEAST_SPREAD // _work(loop.body)))
    if isinstance(loop.extent, tirx.IntImm) and int(loop.extent) < least:
        return loop
    marks = {SPREAD: tirx.IntImm("int64", least)}
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, loop.body, annotations=marks)


def _are_independent(statement: tirx.Stmt) -> bool:
    """Whether it is a loop of which each round writes what no other one reads or writes, and none is shared already."""
    if not isinstance(statement, tirx.For) or not is_serial(statement) or not is_code(statement):
        return False
    if _has_marks(statement):
        return False
    nest, (read, written) = single_nest(statement), accesses(statement)
    own: set[tirx.Var] = set()
    tvm_ffi.structural_walk(statement, (tirx.AllocBuffer, lambda node: own.add(node.buffer)), order="pre")
    variables = [var for var, _ in nest.axes] if nest else [statement.loop_var]
    for buffer in {buffer for buffer, _ in written} - own:
        found = [access for access in read + written if access[0].same_as(buffer)]
        if not all(axes_at(found, var) for var in variables):
            return False
    return True


def _has_marks(statement: tirx.Stmt) -> bool:
    """Whether workers share a loop within: of a single image, too, as the filters of a convolution."""
    found: list[bool] = []
    tvm_ffi.structural_walk(statement, (tirx.For, lambda loop: found.append(SPREAD in loop.annotations)), order="pre")
    return any(found)


def _in_chunks(loop: tirx.For) -> tuple[tirx.For, tirx.For]:
    """A loop of single elements as one of so many at a time, and one of the rest."""
    size = tirx.IntImm("int64", CHUNK)
    full = tirx.floordiv(loop.extent, size)

    def part(extent: Expr, at: Expr, k: tirx.Var) -> tirx.For:
        return tirx.For(k, loop.min, extent, loop.kind, substituted(loop.body, {loop.loop_var: at}))

    chunk, k, last = (tirx.Var(name, "int64") for name in ("chunk", "k", "k"))
    inner = part(size, chunk * size + k, k)
    rest = part(loop.extent - full * size, full * size + last, last)
    return tirx.For(chunk, loop.min, full, loop.kind, inner), rest


def _work(statement: tirx.Stmt) -> int:
    """How many elements a statement stores at least."""
    if isinstance(statement, tirx.SeqStmt):
        return sum(map(_work, parts(statement)))
    if not isinstance(statement, tirx.For):
        return int(isinstance(statement, tirx.BufferStore))
    extent = int(statement.extent) if isinstance(statement.extent, tirx.IntImm) else 1
    return max(1, extent * _work(statement.body))
