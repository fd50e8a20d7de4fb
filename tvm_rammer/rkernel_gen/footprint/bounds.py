"""Bounds of index expressions, for all rTasks of a kernel at once.

An expression is read as a sum of integer multiples of atoms. A guard bounds such a sum; where the same sum is
part of an index, the index is bounded too, as `1 <= y + ry` bounds the row in `data[n, c, y + ry - 1, x]`.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from tvm import tirx
from tvm.ir import Call, Expr

FAR = 1 << 40
"""Stands for no bound: larger than any index, and small enough that its multiples do not overflow."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A part of an index that is no sum: a variable, or an operation on sums."""

    kind: str
    args: tuple[object, ...]


Terms = frozenset[tuple[Atom, int]]


@dataclass(frozen=True, slots=True)
class Sum:
    """Integer multiples of atoms, and a constant."""

    terms: Terms
    constant: int

    def plus(self, other: "Sum", times: int = 1) -> "Sum":
        """`self + times * other`."""
        terms = dict(self.terms)
        for atom, factor in other.terms:
            terms[atom] = terms.get(atom, 0) + times * factor
        return Sum(frozenset((a, f) for a, f in terms.items() if f), self.constant + times * other.constant)


@dataclass(frozen=True, slots=True)
class Interval:
    """The least and the greatest value: for each rTask, or one number where all are alike."""

    low: np.ndarray | int
    high: np.ndarray | int


_UNKNOWN = Interval(-FAR, FAR)
_ZERO = Sum(frozenset(), 0)


def operation(call: Call) -> str:
    """The name of what is called, without its family; empty for a function of the module."""
    return str(getattr(call.op, "name", "")).rpartition(".")[2]


class Bounds:
    """What is known of variables and sums in the scope that a walk through a function has reached.

    Parameters
    ----------
    num_rtasks : int

    Attributes
    ----------
    alive : numpy.ndarray
        Which rTasks can come here at all.
    """

    def __init__(self, num_rtasks: int) -> None:
        self.alive = np.ones(num_rtasks, bool)
        self._ranges: dict[tirx.Var, Interval] = {}
        self._sums: dict[tirx.Var, Sum] = {}
        self._limits: dict[Terms, Interval] = {}
        self._fresh = itertools.count()

    def set_range(self, var: tirx.Var, interval: Interval) -> None:
        """Let a variable take the values of an interval."""
        self._ranges[var] = interval

    def set_value(self, var: tirx.Var, value: Expr) -> None:
        """Let a variable stand for an expression."""
        self._sums[var] = self._sum(value)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is assumed within a scope is forgotten at its end."""
        alive, limits = self.alive, self._limits
        self._limits = dict(limits)
        yield
        self.alive, self._limits = alive, limits

    def assume(self, condition: Expr, holds: bool = True) -> None:
        """Take a condition for true, or for false, until the scope ends; ignore what is no comparison."""
        match condition:
            case tirx.And() if holds:
                self.assume(condition.a)
                self.assume(condition.b)
            case tirx.Or() if not holds:
                self.assume(condition.a, False)
                self.assume(condition.b, False)
            case tirx.Not():
                self.assume(condition.a, not holds)
            case Call() if operation(condition) == "likely":
                self.assume(condition.args[0], holds)
            case tirx.EQ() if holds:
                self._at_most(condition.a, condition.b, 0)
                self._at_most(condition.b, condition.a, 0)
            case tirx.LT() | tirx.LE() | tirx.GT() | tirx.GE():
                less, strict = isinstance(condition, tirx.LT | tirx.LE), isinstance(condition, tirx.LT | tirx.GT)
                a, b = (condition.a, condition.b) if less == holds else (condition.b, condition.a)
                self._at_most(a, b, -1 if strict == holds else 0)

    def assume_within(self, value: Expr, low: int, high: int) -> None:
        """Take an expression for one that lies between two numbers, until the scope ends."""
        found = self._sum(value)
        self._limit(found, high)
        self._limit(_ZERO.plus(found, -1), -low)

    def interval(self, expr: Expr) -> Interval:
        """Bounds of an expression, here."""
        return self._bounds(self._sum(expr))

    def _at_most(self, a: Expr, b: Expr, difference: int) -> None:
        """`a - b <= difference`."""
        if "int" in str(a.ty.dtype):
            self._limit(self._sum(a).plus(self._sum(b), -1), difference)

    def _limit(self, value: Sum, most: int) -> None:
        """`value <= most`, and so the negated terms are at least something."""
        self.alive = self.alive & (np.asarray(self._bounds(value).low) <= most)
        most -= value.constant
        old = self._limits.get(value.terms, _UNKNOWN)
        self._limits[value.terms] = Interval(old.low, np.minimum(old.high, most))
        negated = _ZERO.plus(value, -1).terms
        old = self._limits.get(negated, _UNKNOWN)
        self._limits[negated] = Interval(np.maximum(old.low, -most), old.high)

    def _sum(self, expr: Expr) -> Sum:
        match expr:
            case tirx.IntImm():
                return Sum(frozenset(), int(expr))
            case tirx.Var():
                return self._sums[expr] if expr in self._sums else _single("variable", expr)
            case tirx.Add():
                return self._sum(expr.a).plus(self._sum(expr.b))
            case tirx.Sub():
                return self._sum(expr.a).plus(self._sum(expr.b), -1)
            case tirx.Mul():
                return _product(self._sum(expr.a), self._sum(expr.b))
            case tirx.FloorDiv() | tirx.FloorMod():
                return self._divided(self._sum(expr.a), self._sum(expr.b), isinstance(expr, tirx.FloorMod))
            case tirx.Min() | tirx.Max():
                kind = "least" if isinstance(expr, tirx.Min) else "greatest"
                return _single(kind, self._sum(expr.a), self._sum(expr.b))
            case tirx.Cast() if "int" in str(expr.value.ty.dtype):
                return self._sum(expr.value)
            case tirx.Broadcast():
                return self._sum(expr.value)
            case tirx.Ramp():
                last = Sum(frozenset(), int(expr.lanes) - 1)
                return self._sum(expr.base).plus(_single("up to", _product(self._sum(expr.stride), last)))
            case tirx.Select():
                return self._either(expr.true_value, expr.false_value)
            case Call() if operation(expr) == "if_then_else":
                return self._either(expr.args[1], expr.args[2])
            case _:
                return _single("unknown", next(self._fresh))

    def _either(self, a: Expr, b: Expr) -> Sum:
        # Two choices between the same values need not choose alike.
        return _single("either", self._sum(a), self._sum(b), next(self._fresh))

    def _divided(self, dividend: Sum, divisor: Sum, remainder: bool) -> Sum:
        by = divisor.constant
        if divisor.terms or by < 1:
            return _single("unknown", next(self._fresh))
        if all(factor % by == 0 for _, factor in dividend.terms):
            if remainder:
                return Sum(frozenset(), dividend.constant % by)
            return Sum(frozenset((a, factor // by) for a, factor in dividend.terms), dividend.constant // by)
        return _single("remainder" if remainder else "quotient", dividend, by)

    def _bounds(self, value: Sum) -> Interval:
        low: np.ndarray | int = 0
        high: np.ndarray | int = 0
        for atom, factor in value.terms:
            part = self._atom(atom)
            first, last = (part.low, part.high) if factor > 0 else (part.high, part.low)
            low, high = low + first * factor, high + last * factor
        limit = self._limits.get(value.terms)
        if limit is not None:
            low, high = np.maximum(low, limit.low), np.minimum(high, limit.high)
        return Interval(_near(low + value.constant), _near(high + value.constant))

    def _atom(self, atom: Atom) -> Interval:
        found = self._unlimited(atom)
        limit = self._limits.get(frozenset([(atom, 1)]))
        if limit is None:
            return found
        return Interval(np.maximum(found.low, limit.low), np.minimum(found.high, limit.high))

    def _unlimited(self, atom: Atom) -> Interval:
        match atom.kind, atom.args:
            case "variable", (tirx.Var() as var,):
                return self._ranges.get(var, _UNKNOWN)
            case ("quotient" | "remainder") as kind, (Sum() as dividend, int(by)):
                return (_quotient if kind == "quotient" else _remainder)(self._bounds(dividend), by)
            case ("least" | "greatest" | "either" | "product") as kind, (Sum() as a, Sum() as b, *_):
                return _COMBINED[kind](self._bounds(a), self._bounds(b))
            case "up to", (Sum() as last,):
                return _union(Interval(0, 0), self._bounds(last))
        return _UNKNOWN


def _single(kind: str, *args: object) -> Sum:
    return Sum(frozenset([(Atom(kind, args), 1)]), 0)


def _product(a: Sum, b: Sum) -> Sum:
    if not a.terms:
        return _ZERO.plus(b, a.constant)
    return _ZERO.plus(a, b.constant) if not b.terms else _single("product", a, b)


def _near(value: np.ndarray | int) -> np.ndarray | int:
    return np.minimum(np.maximum(value, -FAR), FAR)


def _quotient(a: Interval, by: int) -> Interval:
    return Interval(a.low // by, a.high // by)


def _remainder(a: Interval, by: int) -> Interval:
    """Exact where the interval lies within one period."""
    one_period = a.low // by == a.high // by
    return Interval(np.where(one_period, a.low % by, 0), np.where(one_period, a.high % by, by - 1))


def _least(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))


def _greatest(a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))


def _union(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def _times(a: Interval, b: Interval) -> Interval:
    """Of products of unbounded values nothing is known: they might overflow."""
    if max(np.max(np.abs(end)) for end in (a.low, a.high, b.low, b.high)) >= 1 << 30:
        return _UNKNOWN
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(np.broadcast_arrays(*ends)))


_COMBINED = {"least": _least, "greatest": _greatest, "either": _union, "product": _times}
