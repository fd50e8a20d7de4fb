"""Loops that go through memory one after another become one: a row of seven elements has no use of a vector."""

from tvm import tirx

from ....loads.bodies import substituted
from .nests import Nest, accesses, goes_along, is_serial, product, single_nest, split

LONG = 1024
"""Elements of a loop that is not made longer, so that the workers can share the loop around it."""


def merged(statement: tirx.Stmt) -> tirx.Stmt:
    """A statement in which loops around a single store are fewer, where they can be."""

    def rewrite(loop: tirx.For) -> tirx.Stmt:
        nest = single_nest(loop)
        count = 1 if nest is None else _in_a_row(nest)
        if nest is None or count < 2:
            return loop
        inner, var = nest.axes[-count:], tirx.Var("k", "int64")
        store = substituted(nest.store, split(inner, var))
        return Nest([*nest.axes[:-count], (var, product(extent for _, extent in inner))], store).code()

    def visit(node: tirx.Stmt) -> tirx.Stmt:
        if isinstance(node, tirx.SeqStmt):
            return tirx.SeqStmt([visit(part) for part in node.seq])
        if not isinstance(node, tirx.For):
            return node
        made = rewrite(node)
        if not made.same_as(node) or single_nest(node) is not None or not is_serial(node):
            return made
        return tirx.For(node.loop_var, node.min, node.extent, node.kind, visit(node.body))

    return visit(statement)


def _in_a_row(nest: Nest) -> int:
    """How many of the innermost loops go, wherever the nest reads or writes, through memory in its order or stay.

    All but the first have to be of a length that is known: where each element is could not be told without divisions.
    """
    read, written = accesses(nest.store)
    count, length = 1, 1
    while count < len(nest.axes) and isinstance(extent := nest.axes[-count][1], tirx.IntImm):
        length *= int(extent)
        if not 0 < length < LONG or not all(goes_along(nest.axes[-count - 1 :], access) for access in read + written):
            break
        count += 1
    return count
