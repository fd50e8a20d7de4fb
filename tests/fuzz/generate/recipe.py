"""Random functions of TVM as plain data.

Expressions are tuples:

    ("lit", dtype, number)  ("load", buffer, index...)  ("bin", op, a, b)  ("call", function, a)
    ("cast", dtype, a)
    ("if", condition, a, b)  ("select", condition, a, b)  ("axis", number, dtype)

and indices, which are integers:

    ("var", number)  ("num", n)  ("add", a, b)  ("mul", a, n)  ("div", a, n)  ("mod", a, n)
    ("min", a, n)  ("max", a, n)
    ("data", buffer, n, index...): what an int32 buffer holds, modulo n

A condition is ("cmp", op, a, b) of two indices, or ("and" | "or", condition, condition).
"""

from dataclasses import dataclass
from typing import Any

Expr = tuple[Any, ...]


@dataclass(frozen=True)
class Buffer:
    """A tensor: an input, a result or an intermediate."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """One block: `target[axes + offset] = body`, or a reduction of it.

    Attributes
    ----------
    target : str
    spatial, reduce : tuple of int
        Extents of the block's axes; loads may use all of them.
    combine : str
        "", "sum", "max", "min" or "prod".
    init : float
    body : Expr
    offset : tuple of int
        Where it writes, beside the first element.
    split : int
        The first loop is cut by it into two.
    order : tuple of int
        Of the loops.
    place : tuple of Expr
        The indices that it writes, if these are not the axes.
    where : Expr
        A condition on the axes, outside of which the block does nothing; () for none.
    term_first : bool
        Whether a reduction is `body + target` instead of `target + body`.
    hidden : tuple of str
        Of "reads" and "writes": what the block says that it does not do.
    """

    target: str
    spatial: tuple[int, ...]
    reduce: tuple[int, ...]
    combine: str
    init: float
    body: Expr
    offset: tuple[int, ...] = ()
    split: int = 1
    order: tuple[int, ...] = ()
    place: tuple[Expr, ...] = ()
    where: Expr = ()
    term_first: bool = False
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Function:
    """A PrimFunc: its inputs, then its results."""

    name: str
    inputs: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    wide: bool
    """Whether indices have 64 bits."""


def bounds(index: Expr, extents: tuple[int, ...]) -> tuple[int, int]:
    """The smallest and the largest value that an index may have."""
    kind = index[0]
    if kind == "var":
        return 0, extents[index[1]] - 1
    if kind == "num":
        return index[1], index[1]
    if kind == "data":
        return 0, index[2] - 1
    low, high = bounds(index[1], extents)
    if kind == "add":
        other = bounds(index[2], extents)
        return low + other[0], high + other[1]
    n = index[2]
    if kind == "mul":
        return min(low * n, high * n), max(low * n, high * n)
    if kind == "div":
        return low // n, high // n
    if kind == "mod":
        return (low, high) if low >= 0 and high < n else (0, n - 1)
    return (min(low, n), min(high, n)) if kind == "min" else (max(low, n), max(high, n))
