"""Indices whose bounds or number only run time knows: a function copies them, and fails at the first one outside.

It fails before anything is read or written by these indices, for a tensor may turn out to have no elements at all,
and then there is no index that one could go on with. So does a function that copies a tensor whose sizes have to fit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tvm import ir, tirx

from ....ir import MOST_ELEMENTS
from ...regions.eligible import LEAVE
from ..bound_chains import OPAQUE


@dataclass(frozen=True, slots=True)
class GuardKind:
    """What a guard looks at; the numbers themselves are arguments of it.

    Parameters
    ----------
    rank : int
        Axes of the indices.
    dtype : str
    bounds : int
        1, or one for each entry of the last axis of the indices.
    fits : int
        Pairs of sizes, of which the first must not be larger.
    message : str
        What the error says.
    """

    rank: int
    dtype: str
    bounds: int
    fits: int
    message: str


def index_guard(kind: GuardKind) -> tirx.PrimFunc:
    """A function that copies indices, and raises an AssertionError where it must not.

    Its parameters are the indices, then numbers of int64: all lowest indices that are allowed, all highest ones, and
    the two sizes of each pair; last the copy.
    """
    extents = [tirx.Var(f"n{axis}", "int64") for axis in range(kind.rank)]
    indices = tirx.decl_buffer(extents, kind.dtype, "indices")
    checked = tirx.decl_buffer(extents, kind.dtype, "checked")
    lowest, highest = ([tirx.Var(f"{name}{i}", "int64") for i in range(kind.bounds)] for name in ("lowest", "highest"))
    small, large = ([tirx.Var(f"{name}{i}", "int64") for i in range(kind.fits)] for name in ("small", "large"))

    at = [tirx.Var(f"i{axis}", "int64") for axis in range(kind.rank)]
    value = tirx.BufferLoad(indices, at)
    wide = tirx.Cast("int64", value)
    low, high = (_entry(bounds, at) for bounds in (lowest, highest))
    body: tirx.Stmt = tirx.SeqStmt(
        [_assertion(kind.message, tirx.And(wide >= low, wide <= high)), tirx.BufferStore(checked, value, at)]
    )
    for axis in reversed(range(kind.rank)):
        body = tirx.For(at[axis], tirx.const(0, "int64"), extents[axis], tirx.ForKind.SERIAL, body)
    sizes = [_assertion(kind.message, a <= b) for a, b in zip(small, large, strict=True)]
    pairs = [size for pair in zip(small, large, strict=True) for size in pair]
    func = tirx.PrimFunc([indices, *lowest, *highest, *pairs, checked], tirx.SeqStmt([*sizes, body]) if sizes else body)
    return func.with_attr(_ATTRIBUTES)


class Relation(Enum):
    """What two sizes have to be to each other; the value says what is wrong otherwise."""

    EQUAL = "not equal"
    EQUAL_OR_ONE = "neither equal nor 1"
    ONE_OR_EQUAL = "not equal, nor 1 in what is broadcast"
    AT_MOST = "too small"

    def holds(self, a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
        """Whether the first is the second one, or one of them may also be 1, or the second one larger."""
        if self is Relation.AT_MOST:
            return a <= b
        if self is Relation.EQUAL:
            return a == b
        return tirx.Or(a == b, (b if self is Relation.EQUAL_OR_ONE else a) == 1)


def size_guard(rank: int, dtype: str, count: int, message: str, relation: Relation) -> tirx.PrimFunc:
    """A function that copies a tensor, and raises an AssertionError with a message where sizes do not fit.

    Its parameters are the tensor, two numbers of int64 for each of `count` pairs, and the copy. The extents of tensor
    and copy are equal, or such a pair; the copy repeats what it has one of (`Relation.ONE_OR_EQUAL`).
    """
    extents, others = ([tirx.Var(f"{name}{axis}", "int64") for axis in range(rank)] for name in "nm")
    data, copy = tirx.decl_buffer(extents, dtype, "data"), tirx.decl_buffer(others, dtype, "copy")
    pairs = [(tirx.Var(f"a{i}", "int64"), tirx.Var(f"b{i}", "int64")) for i in range(count)]
    zero = tirx.const(0, "int64")

    def copied(sizes: Sequence[tirx.Expr], there: Callable[[int, tirx.Expr], tirx.Expr]) -> tirx.Stmt:
        at = [tirx.Var(f"i{axis}", "int64") for axis in range(rank)]
        value = tirx.BufferLoad(data, [there(axis, place) for axis, place in enumerate(at)])
        body: tirx.Stmt = tirx.BufferStore(copy, value, at)
        for axis in reversed(range(rank)):
            body = tirx.For(at[axis], zero, sizes[axis], tirx.ForKind.SERIAL, body)
        return body

    body = copied(extents, lambda _axis, place: place)
    if relation is Relation.ONE_OR_EQUAL:
        same = [a == b for a, b in zip(extents, others, strict=True)]
        repeated = copied(others, lambda axis, place: tirx.Select(same[axis], place, zero))
        body = tirx.IfThenElse(tirx.all(*same), body, repeated)
    checks = [_assertion(message, relation.holds(a, b)) for a, b in pairs]
    func = tirx.PrimFunc([data, *(n for pair in pairs for n in pair), copy], tirx.SeqStmt([*checks, body]))
    return func.with_attr(_ATTRIBUTES)


def extent_guard(count: int, message: str) -> tirx.PrimFunc:
    """A function that copies extents, and raises an AssertionError with a message where no tensor could have them.

    None is negative, and all together are less than `MOST_ELEMENTS`; an extent of 0 counts as 1, since the others have
    to be addressed, too.
    """
    extents, copy = (tirx.decl_buffer((count,), "int64", name) for name in ("extents", "copy"))
    statements: list[tirx.Stmt] = []
    most: tirx.Expr = tirx.const(MOST_ELEMENTS - 1, "int64")
    for axis in range(count):
        extent = tirx.BufferLoad(extents, [tirx.const(axis, "int64")])
        fits = tirx.And(extent >= tirx.const(0, "int64"), extent <= most)
        statements += [_assertion(message, fits), tirx.BufferStore(copy, extent, [tirx.const(axis, "int64")])]
        most = tirx.floordiv(most, tirx.max(extent, tirx.const(1, "int64")))
    func = tirx.PrimFunc([extents, copy], tirx.SeqStmt(statements))
    return func.with_attr(_ATTRIBUTES)


def step_guard(count: int, message: str) -> tirx.PrimFunc:
    """A function that copies steps, and raises an AssertionError with a message where one is 0."""
    steps, copy = (tirx.decl_buffer((count,), "int64", name) for name in ("steps", "copy"))
    places = [[tirx.const(axis, "int64")] for axis in range(count)]
    checks = [_assertion(message, tirx.BufferLoad(steps, at) != tirx.const(0, "int64")) for at in places]
    copies = [tirx.BufferStore(copy, tirx.BufferLoad(steps, at), at) for at in places]
    return tirx.PrimFunc([steps, copy], tirx.SeqStmt([*checks, *copies])).with_attr(_ATTRIBUTES)


_ATTRIBUTES = {
    "op_pattern": OPAQUE,
    "tirx.is_scheduled": True,
    LEAVE: "it looks at indices or sizes, and may end the call",
}


def _assertion(message: str, condition: tirx.Expr) -> tirx.Stmt:
    return tirx.AssertStmt(condition, ir.StringImm("AssertionError"), [ir.StringImm(message)])


def _entry(bounds: Sequence[tirx.Var], at: Sequence[tirx.Var]) -> tirx.Expr:
    """The bound for one index: the only one, or that of its place on the last axis."""
    chosen: tirx.Expr = bounds[-1]
    for place in reversed(range(len(bounds) - 1)):
        chosen = tirx.Select(at[-1] == place, bounds[place], chosen)
    return chosen
