"""Indices whose bounds or number only run time knows: a function copies them, and fails at the first one outside.

It fails before anything is read or written by these indices, for a tensor may turn out to have no elements at all,
and then there is no index that one could go on with.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

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
        [_assertion(kind, tirx.And(wide >= low, wide <= high)), tirx.BufferStore(checked, value, at)]
    )
    for axis in reversed(range(kind.rank)):
        body = tirx.For(at[axis], tirx.const(0, "int64"), extents[axis], tirx.ForKind.SERIAL, body)
    sizes = [_assertion(kind, a <= b) for a, b in zip(small, large, strict=True)]
    pairs = [size for pair in zip(small, large, strict=True) for size in pair]
    func = tirx.PrimFunc([indices, *lowest, *highest, *pairs, checked], tirx.SeqStmt([*sizes, body]) if sizes else body)
    attributes = {"op_pattern": OPAQUE, "tirx.is_scheduled": True, LEAVE: "it looks at indices, and may end the call"}
    return func.with_attr(attributes)


def _assertion(kind: GuardKind, condition: tirx.Expr) -> tirx.Stmt:
    return tirx.AssertStmt(condition, ir.StringImm("AssertionError"), [ir.StringImm(kind.message)])


def _entry(bounds: Sequence[tirx.Var], at: Sequence[tirx.Var]) -> tirx.Expr:
    """The bound for one index: the only one, or that of its place on the last axis."""
    chosen: tirx.Expr = bounds[-1]
    for place in reversed(range(len(bounds) - 1)):
        chosen = tirx.Select(at[-1] == place, bounds[place], chosen)
    return chosen
