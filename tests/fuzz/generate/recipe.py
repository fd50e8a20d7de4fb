"""Random functions of TVM as plain data.

Expressions are tuples:

    ("lit", dtype, number)  ("load", buffer, index...)  ("bin", op, a, b)  ("call", function, a)
    ("cast", dtype, a)
    ("if", condition, a, b)  ("select", condition, a, b)  ("axis", number, dtype)

and indices, which are integers:

    ("var", number)  ("num", n)  ("add", a, b)  ("mul", a, n)  ("div", a, n)  ("mod", a, n)
    ("min", a, n)  ("max", a, n)  ("choose", condition, a, b)
    ("data", buffer, n, index...): what an int32 buffer holds, modulo n

A condition is ("cmp", op, a, b) of two indices, or ("and" | "or", condition, condition).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Expr = tuple[Any, ...]

_STEPS: Mapping[str, Any] = {
    "add": np.add, "mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_COMPARE: Mapping[str, Any] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


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
    if kind == "choose":
        (a, b), (c, d) = bounds(index[2], extents), bounds(index[3], extents)
        return min(a, c), max(b, d)
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


Axes = Mapping[int, Any]
Data = Callable[[Expr], Any]


class DataError(Exception):
    """An index depends on data, which nobody knows yet."""


def no_data(e: Expr) -> Any:
    """What stands for data where an index must not depend on them."""
    raise DataError(str(e))


def index_values(e: Expr, axes: Axes, data: Data = no_data) -> Any:
    """The values of an index, of those of the axes; `data` has those of ("data", ...)."""
    kind = e[0]
    if kind == "var":
        return axes[e[1]]
    if kind == "num":
        return np.int64(e[1])
    if kind == "data":
        return data(e)
    if kind == "choose":
        return np.where(
            condition_values(e[1], axes, data), index_values(e[2], axes, data), index_values(e[3], axes, data)
        )
    other = index_values(e[2], axes, data) if kind == "add" else e[2]
    return _STEPS[kind](index_values(e[1], axes, data), other)


def condition_values(e: Expr, axes: Axes, data: Data = no_data) -> Any:
    """Where a condition holds."""
    if e[0] == "cmp":
        return _COMPARE[e[1]](index_values(e[2], axes, data), index_values(e[3], axes, data))
    a, b = condition_values(e[1], axes, data), condition_values(e[2], axes, data)
    return a & b if e[0] == "and" else a | b


def span(e: Expr, extents: tuple[int, ...]) -> tuple[int, int]:
    """The smallest and the largest value that an index of axes really has."""
    used = sorted(_axes(e))
    grid = np.indices([extents[a] for a in used]).reshape(len(used), -1) if used else ()
    values = np.asarray(index_values(e, dict(zip(used, grid, strict=True))))
    return int(values.min()), int(values.max())


def _axes(e: Expr) -> set[int]:
    here = {e[1]} if e[0] == "var" else set()
    return here.union(*(_axes(part) for part in e if isinstance(part, tuple)))


def plus(a: Expr, n: int) -> Expr:
    """An index moved by a number."""
    return ("add", a, ("num", n)) if n else a


def times(a: Expr, n: int) -> Expr:
    """A multiple of an index."""
    return ("mul", a, n) if n != 1 else a
