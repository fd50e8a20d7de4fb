"""Logarithms, and the inverse hyperbolic functions that are made of them.

The polynomial is that of the Cephes library (S. Moshier, logf).
"""

import math

from tvm import tirx
from tvm.ir import Expr

from .powers import LN2_HIGH, LN2_LOW
from .terms import bits, from_bits, number, polynomial, with_sign_of

LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
LEAST_NORMAL, NORMAL_SHIFT = 2.0**-126, 23
"""Smaller numbers are multiplied by a power of 2 before their exponent is read, here 2^23."""
ROOT_BITS = 0x3F3504F3
"""Of the square root of 1/2, where the significand of a logarithm begins."""
LARGE = 2.0**31
"""Numbers beyond it are as large as the root of 1 and their square; these may be infinite."""


def log(x: Expr) -> Expr:
    """The natural logarithm: the exponent's, and a polynomial of the significand, from sqrt(1/2) to sqrt(2)."""
    found, exponent, rest = (
        tirx.Var(name, kind) for name, kind in [("found", "int32"), ("exponent", "int32"), ("rest", "float32")]
    )
    tiny = x < number(LEAST_NORMAL)
    scaled = bits(tirx.Select(tiny, x * number(2.0**NORMAL_SHIFT), x))
    counted = tirx.Cast("float32", exponent) - tirx.Select(tiny, number(NORMAL_SHIFT), number(0.0))
    square = rest * rest
    value = rest * square * polynomial(LOG, rest) + counted * number(LN2_LOW) - number(0.5) * square
    value = rest + value + counted * number(LN2_HIGH)
    undefined = tirx.Select(x == number(0.0), number(-math.inf), number(math.nan))
    value = tirx.Select(x > number(0.0), tirx.Select(x < number(math.inf), value, x), undefined)
    significand = from_bits(found - (exponent << tirx.IntImm("int32", 23)))
    value = tirx.Let(rest, significand - number(1.0), value)
    value = tirx.Let(exponent, (found - tirx.IntImm("int32", ROOT_BITS)) >> tirx.IntImm("int32", 23), value)
    return tirx.Let(found, scaled, value)


def log1p(x: Expr) -> Expr:
    """The logarithm of 1 + x, also where 1 is all that is left of this sum (W. Kahan)."""
    more = tirx.Var("more", "float32")
    rest = more - number(1.0)
    same = tirx.Or(rest == number(0.0), tirx.Not(more < number(math.inf)))
    value = log(more) * tirx.Select(same, number(1.0), x / rest)
    return tirx.Let(more, x + number(1.0), tirx.Select(rest == number(0.0), x, value))


def asinh(x: Expr) -> Expr:
    """The inverse hyperbolic sine: the logarithm of the sum of x and the root of its square and 1."""
    size, root = tirx.Var("size", "float32"), tirx.Var("root", "float32")
    square = size * size
    value = _of_sum(size, size + square / (number(1.0) + root))
    return tirx.Let(size, tirx.abs(x), tirx.Let(root, tirx.sqrt(square + number(1.0)), with_sign_of(value, x)))


def acosh(x: Expr) -> Expr:
    """The inverse hyperbolic cosine; NaN below 1."""
    beyond = tirx.Var("beyond", "float32")
    value = _of_sum(x, beyond + tirx.sqrt(beyond * number(2.0) + beyond * beyond))
    return tirx.Let(beyond, x - number(1.0), tirx.Select(x >= number(1.0), value, number(math.nan)))


def atanh(x: Expr) -> Expr:
    """The inverse hyperbolic tangent: half of the logarithm of (1 + x) / (1 - x)."""
    size, grown = tirx.Var("size", "float32"), tirx.Var("grown", "float32")
    value = with_sign_of(number(0.5) * log1p(grown), x)
    return tirx.Let(size, tirx.abs(x), tirx.Let(grown, number(2.0) * size / (number(1.0) - size), value))


def _of_sum(x: Expr, grown: Expr) -> Expr:
    """The logarithm of 1 + `grown`, which is that of 2 x where x is large."""
    added = tirx.Var("added", "float32")
    large = x > number(LARGE)
    value = log1p(added) + tirx.Select(large, number(math.log(2.0)), number(0.0))
    return tirx.Let(added, tirx.Select(large, x, grown), value)
