"""Functions of angles, and their inverses.

The polynomials are those of the Cephes library (S. Moshier, sinf, cosf, atanf and asinf).
"""

import math
from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr

from .terms import bits, from_bits, nearest, number, polynomial, sign_of, with_sign_of

TWO_BY_PI, POINT = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB, 224
"""2 / pi, and how many bits are behind its point."""
EXACT = 29
"""Bits of a factor whose product with a number of float32 is exact in float64."""
LIMITS = (53, 82, 111)
"""Powers of 2 from which on an angle is scaled by 2^-29 once more."""
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
ASIN = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)
EIGHTH, THREE_EIGHTHS = math.tan(math.pi / 8), math.tan(3 * math.pi / 8)
LARGEST = 3.4028234663852886e38
"""Of float32."""


def sin(x: Expr) -> Expr:
    """The sine, of angles of any size."""

    def value(rest: Expr, quadrant: Expr) -> Expr:
        return from_bits(bits(_sine(rest, quadrant)) ^ _sign(quadrant) ^ sign_of(x))

    return _of_quadrant(x, value)


def cos(x: Expr) -> Expr:
    """The cosine: the sine of a quarter turn more."""

    def value(rest: Expr, quadrant: Expr) -> Expr:
        ahead = quadrant + tirx.IntImm("int32", 1)
        return from_bits(bits(_sine(rest, ahead)) ^ _sign(ahead))

    return _of_quadrant(x, value)


def tan(x: Expr) -> Expr:
    """The tangent: sine over cosine, which change places at every second quarter turn."""

    def value(rest: Expr, quadrant: Expr) -> Expr:
        quotient = _sine(rest, quadrant) / _sine(rest, quadrant + tirx.IntImm("int32", 1))
        return from_bits(bits(quotient) ^ _sign(quadrant + quadrant) ^ sign_of(x))

    return _of_quadrant(x, value)


def atan(x: Expr) -> Expr:
    """The inverse tangent: a polynomial about 0, an eighth turn and a quarter turn."""
    size, near = tirx.Var("size", "float32"), tirx.Var("near", "float32")
    far, middle = size > number(THREE_EIGHTHS), size > number(EIGHTH)
    turned = tirx.Select(middle, (size - number(1.0)) / (size + number(1.0)), size)
    turned = tirx.Select(far, number(-1.0) / size, turned)
    begin = tirx.Select(far, number(math.pi / 2), tirx.Select(middle, number(math.pi / 4), number(0.0)))
    square = near * near
    value = begin + (polynomial(ATAN, square) * square * near + near)
    return tirx.Let(size, tirx.abs(x), tirx.Let(near, turned, with_sign_of(value, x)))


def asin(x: Expr) -> Expr:
    """The inverse sine; beyond 1/2 by half of the angle that is left."""

    def value(size: Expr, half: Expr) -> Expr:
        return with_sign_of(tirx.Select(size > number(0.5), number(math.pi / 2) - number(2.0) * half, half), x)

    return _inverse_sine(x, value)


def acos(x: Expr) -> Expr:
    """The inverse cosine, as precise near 1 as elsewhere."""

    def value(size: Expr, half: Expr) -> Expr:
        negative = x < number(0.0)
        near = tirx.Select(negative, number(math.pi) - number(2.0) * half, number(2.0) * half)
        far = number(math.pi / 2) - tirx.Select(negative, number(0.0) - half, half)
        return tirx.Select(size > number(0.5), near, far)

    return _inverse_sine(x, value)


def _of_quadrant(x: Expr, value: Callable[[Expr, Expr], Expr]) -> Expr:
    """A function of the size of an angle: of its number of quarter turns modulo 4, and of the rest within half of one.

    A large angle is scaled so that it is an integer below 2^53. Multiples of 4 of the factor that makes quarter turns
    of it are whole turns then. (M. Payne, R. Hanek: Radian reduction for trigonometric functions, SIGNUM Newsletter
    1983.)
    """
    size, scaled, first, second, turns, rest = (
        tirx.Var(name, "float64") for name in ("size", "scaled", "first", "second", "turns", "rest")
    )
    angle, quadrant = tirx.Var("angle", "float32"), tirx.Var("quadrant", "int32")

    def by_size(choices: Sequence[float]) -> Expr:
        chosen = _double(choices[-1])
        for power, choice in reversed(list(zip(LIMITS, choices[:-1], strict=True))):
            chosen = tirx.Select(size < _double(2.0**power), _double(choice), chosen)
        return chosen

    scales = [EXACT * n for n in range(len(LIMITS) + 1)]
    one, two, three = map(by_size, zip(*map(_quarters, scales), strict=True))
    finite = tirx.abs(x) <= number(LARGEST)
    whole = nearest(first)
    counted = whole - _double(4.0) * tirx.floor(whole * _double(0.25)) + nearest(second)
    left = (first - whole) + (second - nearest(second)) + scaled * three
    body = tirx.Select(finite, value(angle, quadrant), number(math.nan))
    body = tirx.Let(quadrant, tirx.Cast("int32", counted + turns), body)
    body = tirx.Let(angle, tirx.Cast("float32", (rest - turns) * _double(math.pi / 2)), body)
    body = tirx.Let(rest, left, tirx.Let(turns, nearest(rest), body))
    body = tirx.Let(first, scaled * one, tirx.Let(second, scaled * two, body))
    body = tirx.Let(scaled, size * by_size([2.0**-power for power in scales]), body)
    # To make an integer of what is infinite or NaN is undefined.
    return tirx.Let(size, tirx.Cast("float64", tirx.Select(finite, tirx.abs(x), number(0.0))), body)


def _quarters(scale: int) -> tuple[float, float, float]:
    """Quarter turns of an angle of 2^`scale` without the whole ones: in two parts that are exact, and the rest."""
    fixed = (TWO_BY_PI << scale) % (4 << POINT)
    first = fixed >> (POINT - EXACT + 2) << (POINT - EXACT + 2)
    second = fixed - first >> (POINT - 2 * EXACT + 2) << (POINT - 2 * EXACT + 2)
    return first / (1 << POINT), second / (1 << POINT), (fixed - first - second) / (1 << POINT)


def _sine(rest: Expr, quadrant: Expr) -> Expr:
    """The size of the sine of quarter turns and a rest, with the sign that it has in the first half turn."""
    square = rest * rest
    sine = polynomial(SIN, square) * square * rest + rest
    cosine = polynomial(COS, square) * square * square - number(0.5) * square + number(1.0)
    odd = (quadrant & tirx.IntImm("int32", 1)) == tirx.IntImm("int32", 1)
    return tirx.Select(odd, cosine, sine)


def _sign(quadrant: Expr) -> Expr:
    """The bit that the second half of a turn has as its sign."""
    return (quadrant & tirx.IntImm("int32", 2)) << tirx.IntImm("int32", 30)


def _inverse_sine(x: Expr, value: Callable[[Expr, Expr], Expr]) -> Expr:
    """A function of the size of a sine, and of its inverse; beyond 1/2 of half of what is left of a quarter turn."""
    size, square, root = (tirx.Var(name, "float32") for name in ("size", "square", "root"))
    beyond = size > number(0.5)
    made = value(size, polynomial(ASIN, square) * square * root + root)
    made = tirx.Let(root, tirx.Select(beyond, tirx.sqrt(square), size), made)
    made = tirx.Let(square, tirx.Select(beyond, number(0.5) * (number(1.0) - size), size * size), made)
    return tirx.Let(size, tirx.abs(x), made)


def _double(value: float) -> Expr:
    return tirx.FloatImm("float64", value)
