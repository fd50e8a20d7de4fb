"""Intervals of integers, one for each rTask, and what operations make of them."""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

LARGEST = 2.0**50
"""Bounds are floating-point numbers, exact up to here. What is beyond is infinite: then there is no bound."""


Values: TypeAlias = NDArray[Any] | float


class Interval(NamedTuple):
    """The least and the greatest value: one for each rTask, or a single number where all are equal.

    The least value may be minus infinity but not infinity, and the greatest one the reverse.
    """

    low: Values
    high: Values


UNKNOWN = Interval(-math.inf, math.inf)


def as_float(value: int) -> float:
    """A number as a factor or summand of bounds; a large one is rounded, and so is what is computed with it."""
    return float(max(-(1 << 100), min(1 << 100, value)))


def larger(a: Values, b: Values) -> Values:
    """The maximum of two bounds. Most are single numbers, for which NumPy takes ten times as long as Python."""
    return max(a, b) if isinstance(a, float) and isinstance(b, float) else np.maximum(a, b)


def smaller(a: Values, b: Values) -> Values:
    """The minimum of two bounds."""
    return min(a, b) if isinstance(a, float) and isinstance(b, float) else np.minimum(a, b)


def bounded(low: Values, high: Values) -> Interval:
    """An interval whose finite bounds are exact: large ones are moved outwards, to infinity or to `LARGEST`."""
    if isinstance(low, float) and isinstance(high, float):
        return Interval(
            -math.inf if low < -LARGEST else min(low, LARGEST),
            math.inf if high > LARGEST else max(high, -LARGEST),
        )
    return Interval(
        np.where(np.less(low, -LARGEST), -math.inf, np.minimum(low, LARGEST)),
        np.where(np.greater(high, LARGEST), math.inf, np.maximum(high, -LARGEST)),
    )


def quotient(a: Interval, by: int) -> Interval:
    """By a positive number, rounded down."""
    return Interval(np.floor(a.low / as_float(by)), np.floor(a.high / as_float(by)))


def remainder(a: Interval, by: int) -> Interval:
    """Of the division by a positive number. Exact where the interval lies within one period."""
    periods, period = quotient(a, by), as_float(by)
    if isinstance(periods.low, float) and isinstance(periods.high, float):
        if periods.low != periods.high or math.isinf(periods.low):
            return Interval(0.0, period - 1.0)
        return bounded(a.low - periods.low * period, a.high - periods.low * period)
    one_period = np.isfinite(periods.low) & (periods.low == periods.high)
    start = np.where(one_period, periods.low, 0.0) * period
    return bounded(
        np.where(one_period, a.low - start, 0.0),
        np.where(one_period, a.high - start, period - 1.0),
    )


def _min(a: Interval, b: Interval) -> Interval:
    return Interval(smaller(a.low, b.low), smaller(a.high, b.high))


def _max(a: Interval, b: Interval) -> Interval:
    return Interval(larger(a.low, b.low), larger(a.high, b.high))


def union(a: Interval, b: Interval) -> Interval:
    """The smallest interval around two."""
    return Interval(smaller(a.low, b.low), larger(a.high, b.high))


def _multiplied(a: Interval, b: Interval) -> Interval:
    """The product; unknown for large values."""
    if max(np.max(np.abs(end)) for end in (a.low, a.high, b.low, b.high)) >= 1 << 25:
        return UNKNOWN
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(np.broadcast_arrays(*ends)))


COMBINED = {"min": _min, "max": _max, "select": union, "product": _multiplied}
"""What operations on two intervals yield, by the kind of atom."""
