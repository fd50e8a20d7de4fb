"""Interval analysis of index expressions, for all rTasks of a kernel at once.

An expression is normalised to a sum of integer multiples of atoms. A guard bounds such a sum; where the same sum is
part of an index, the index is bounded too. So `1 <= y + ry` bounds the row in `data[n, c, y + ry - 1, x]`.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir import Call, Expr, Type

from ...loads.bodies import operation
from ..analysis.variables import address
from .interval import (
    COMBINED,
    UNKNOWN,
    Interval,
    Values,
    as_float,
    bounded,
    larger,
    quotient,
    remainder,
    smaller,
    union,
)
from .sums import ZERO, Atom, Sum, Terms, atom_sum, product

HINT = "prefetch"
"""The operation that asks for an element ahead of its use."""


class Bounds:
    """The bounds of variables and sums in the scope that a walk through a function has reached.

    Parameters
    ----------
    num_rtasks : int

    Attributes
    ----------
    reachable : numpy.ndarray
        Which rTasks can reach the scope.
    facts : tuple of int
        Stands for all that is assumed and defined: while it is the same, so are all intervals.
    """

    def __init__(self, num_rtasks: int) -> None:
        self.reachable = np.ones(num_rtasks, bool)
        self.facts = (0, 0)
        self._ranges: dict[int, Interval] = {}  # by the addresses of variables
        self._sums: dict[int, Sum] = {}
        self._types: dict[int, tuple[Type, int, int]] = {}
        self._limits: dict[Terms, Interval] = {}
        self._intervals: dict[tuple[tuple[int, int], Sum], Interval] = {}
        self._fresh = itertools.count(1)

    def set_range(self, var: tirx.Var, interval: Interval) -> None:
        """Set the interval of a variable."""
        if address(var) in self._ranges:
            self.facts = (self.facts[0], next(self._fresh))
        self._ranges[address(var)] = interval

    def set_value(self, var: tirx.Var, value: Expr) -> None:
        """Define a variable by an expression."""
        self._sums[address(var)] = self.value(value)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope: assumptions that are made in it end with it."""
        reachable, limits, assumed = self.reachable, self._limits, self.facts[0]
        self._limits = dict(limits)
        yield
        self.reachable, self._limits, self.facts = reachable, limits, (assumed, self.facts[1])

    def assume(self, condition: Expr, holds: bool = True) -> None:
        """Assume that a condition is true, or false, until the scope ends; ignore what is no comparison of integers."""
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
        """Assume that an expression is between two numbers, until the scope ends."""
        found = self.value(value)
        self._limit(found, high)
        self._limit(ZERO.plus(found, -1), -low)

    def interval(self, value: Sum) -> Interval:
        """Bounds of a value in the current scope."""
        key = self.facts, value
        if key not in self._intervals:
            self._intervals[key] = self._bounds(value)
        return self._intervals[key]

    def _at_most(self, a: Expr, b: Expr, difference: int) -> None:
        """Assume `a - b <= difference`."""
        if "int" in str(a.ty.dtype):
            self._limit(self.value(a).plus(self.value(b), -1), difference)

    def _limit(self, value: Sum, most: int) -> None:
        """Assume `value <= most`: an upper bound of its terms, and a lower bound of the negated ones."""
        low = self.interval(value).low
        self.facts = (next(self._fresh), self.facts[1])
        self.reachable = self.reachable & (np.asarray(low) <= most)
        limit = as_float(most - value.constant)
        old = self._limits.get(value.terms, UNKNOWN)
        self._limits[value.terms] = Interval(old.low, smaller(old.high, limit))
        negated = ZERO.plus(value, -1).terms
        old = self._limits.get(negated, UNKNOWN)
        self._limits[negated] = Interval(larger(old.low, -limit), old.high)

    def value(self, expr: Expr) -> Sum:
        """An integer expression in its normal form, without the variables that are defined."""
        form = _FORMS.get(type(expr))
        return self._unknown() if form is None else form(self, expr)

    def _unknown(self) -> Sum:
        return atom_sum("unknown", next(self._fresh))

    def _variable(self, var: tirx.Var) -> Sum:
        found = self._sums.get(address(var))
        return atom_sum("variable", address(var)) if found is None else found

    def _arithmetic(self, expr: tirx.Add | tirx.Sub | tirx.Mul) -> Sum:
        if self._type_range(expr)[0] == 0:  # unsigned numbers wrap around
            return self._unknown()
        a, b, kind = self.value(expr.a), self.value(expr.b), type(expr)
        return product(a, b) if kind is tirx.Mul else a.plus(b, 1 if kind is tirx.Add else -1)

    def _division(self, expr: tirx.FloorDiv | tirx.FloorMod) -> Sum:
        return self._divided(self.value(expr.a), self.value(expr.b), type(expr) is tirx.FloorMod)

    def _extreme(self, expr: tirx.Min | tirx.Max) -> Sum:
        return atom_sum("min" if type(expr) is tirx.Min else "max", self.value(expr.a), self.value(expr.b))

    def _ramp(self, ramp: tirx.Ramp) -> Sum:
        last = Sum(frozenset(), int(ramp.lanes) - 1)
        return self.value(ramp.base).plus(atom_sum("ramp", product(self.value(ramp.stride), last)))

    def _call(self, call: Call) -> Sum:
        return self._select(call.args[1], call.args[2]) if operation(call) == "if_then_else" else self._unknown()

    def _cast(self, cast: tirx.Cast) -> Sum:
        """A number in another type, which is the same where that type has it."""
        if "int" not in str(cast.value.ty.dtype):
            return self._unknown()
        value = self.value(cast.value)
        (low, high), given = self._type_range(cast), self._type_range(cast.value)
        if low <= given[0] and given[1] <= high:
            return value
        bounds = self.interval(value)
        fits = np.all(np.asarray(bounds.low) >= low) and np.all(np.asarray(bounds.high) <= high)
        return value if fits else self._unknown()

    def _select(self, a: Expr, b: Expr) -> Sum:
        # Each selection is an atom of its own: two of them between the same values may differ.
        return atom_sum("select", self.value(a), self.value(b), next(self._fresh))

    def _divided(self, dividend: Sum, divisor: Sum, remainder: bool) -> Sum:
        by = divisor.constant
        if divisor.terms or by < 1:
            return self._unknown()
        if all(factor % by == 0 for _, factor in dividend.terms):
            if remainder:
                return Sum(frozenset(), dividend.constant % by)
            return Sum(frozenset((a, factor // by) for a, factor in dividend.terms), dividend.constant // by)
        return atom_sum("remainder" if remainder else "quotient", dividend, by)

    def _bounds(self, value: Sum) -> Interval:
        low: Values = 0.0
        high: Values = 0.0
        for atom, factor in value.terms:
            part = self._atom(atom)
            first, last = (part.low, part.high) if factor > 0 else (part.high, part.low)
            times = as_float(factor)
            low, high = low + first * times, high + last * times
        limit = self._limits.get(value.terms)
        if limit is not None:
            low, high = larger(low, limit.low), smaller(high, limit.high)
        constant = as_float(value.constant)
        return bounded(low + constant, high + constant)

    def _atom(self, atom: Atom) -> Interval:
        found = self._unlimited(atom)
        limit = self._limits.get(frozenset([(atom, 1)]))
        if limit is None:
            return found
        return Interval(larger(found.low, limit.low), smaller(found.high, limit.high))

    def _unlimited(self, atom: Atom) -> Interval:
        match atom.kind, atom.args:
            case "variable", (int(variable),):
                return self._ranges.get(variable, UNKNOWN)
            case ("quotient" | "remainder") as kind, (Sum() as dividend, int(by)):
                return (quotient if kind == "quotient" else remainder)(self.interval(dividend), by)
            case ("min" | "max" | "select" | "product") as kind, (Sum() as a, Sum() as b, *_):
                return COMBINED[kind](self.interval(a), self.interval(b))
            case "ramp", (Sum() as last,):
                return union(Interval(0, 0), self.interval(last))
        return UNKNOWN

    def _type_range(self, expr: Expr) -> tuple[int, int]:
        """The least and the greatest integer of an expression's type; an empty range for other types."""
        kind = expr.ty
        if address(kind) not in self._types:
            name, _, bits = str(kind.dtype).partition("x")[0].partition("int")
            least, greatest = 1, 0
            if name in ("", "u") and bits:
                half = 1 << (int(bits) - 1)
                least, greatest = (0, 2 * half - 1) if name else (-half, half - 1)
            self._types[address(kind)] = kind, least, greatest
        return self._types[address(kind)][1:]


# By class: to ask an object of TVM's for one class after another takes long.
_FORMS: dict[type, Callable[[Bounds, Any], Sum]] = {
    tirx.Var: Bounds._variable,
    tirx.IntImm: lambda bounds, number: Sum(frozenset(), int(number)),
    **dict.fromkeys((tirx.Add, tirx.Sub, tirx.Mul), Bounds._arithmetic),
    **dict.fromkeys((tirx.FloorDiv, tirx.FloorMod), Bounds._division),
    **dict.fromkeys((tirx.Min, tirx.Max), Bounds._extreme),
    tirx.Cast: Bounds._cast,
    tirx.Broadcast: lambda bounds, broadcast: bounds.value(broadcast.value),
    tirx.Ramp: Bounds._ramp,
    tirx.Select: lambda bounds, select: bounds._select(select.true_value, select.false_value),
    Call: Bounds._call,
}
