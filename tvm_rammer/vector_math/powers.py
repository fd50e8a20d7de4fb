"""Powers and what is made of them.

exp is the polynomial of the Cephes library (S. Moshier, expf). tanh is the rational function of Eigen
and ONNX Runtime, with a relative error below 3e-7. erf is a minimax rational function that was fitted for this file,
with a relative error below 4e-7.
"""

import math

from tvm import tirx
from tvm.ir import Expr

from .terms import bits, from_bits, number, polynomial

LOWEST, HIGHEST = -87.3365, 88.72283
"""Beyond these, exp is 0 (numbers below 2^-126 are rounded to it) and infinite in float32."""
LOG2_E, LN2_HIGH, LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
RAISED = 64
"""A power of two that an exponential may be asked for in the product with (`replace.py`)."""
SHIFT = 1.5 * 2**23
"""A number plus this has the nearest integer in its last bits."""
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
TANH_NUMERATOR = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
TANH_DENOMINATOR = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
TANH_LIMIT = 9.0
"""Beyond it, tanh is 1 in float32."""
ERF_NUMERATOR = (
    1.9867497869086037e-08, -1.9563178739190334e-06, 1.421389024471864e-04, 3.718133782967925e-03,
    5.062812194228172e-02, 2.0034292340278625e-01, 1.1283791065216064,
)  # fmt: skip
ERF_DENOMINATOR = (9.596894960850477e-04, 1.4388002455234528e-02, 1.1517065763473511e-01, 5.108809471130371e-01, 1.0)
ERF_LIMIT = 3.925
"""Beyond it, erf is 1 in float32."""
LARGEST = 3.4028234663852886e38
MAX_QUARTERS = 16
"""Powers whose exponent is at most so many quarters become products of square roots."""


def exp(x: Expr, raised: tirx.IntImm | None = None) -> Expr:
    """e^x = 2^n e^rest: a polynomial of the rest, with n, and `raised`, added to the bits of its exponent."""
    more = 0 if raised is None else int(raised)
    lowest, highest = (limit - more * math.log(2) for limit in (LOWEST, HIGHEST))
    shifted, value = tirx.Var("shifted", "float32"), tirx.Var("value", "float32")
    n = shifted - number(SHIFT + more)
    rest = x - n * number(LN2_HIGH) - n * number(LN2_LOW)
    power = polynomial(EXP, rest) * (rest * rest) + rest + number(1.0)
    scaled = from_bits(bits(value) + (bits(shifted) << tirx.IntImm("int32", 23)))
    # A NaN fails both comparisons. Its shifted bits are zero, so that the sum of bits is a NaN still.
    limited = tirx.Select(x > number(highest), number(math.inf), tirx.Select(x < number(lowest), number(0.0), scaled))
    return tirx.Let(shifted, x * number(LOG2_E) + number(SHIFT + more), tirx.Let(value, power, limited))


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + e^-x)."""
    return number(1.0) / (number(1.0) + exp(number(0.0) - x))


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent: an odd polynomial over an even one."""
    near = tirx.Var("near", "float32")
    # This order of arguments propagates a NaN.
    limited = tirx.max(number(-TANH_LIMIT), tirx.min(number(TANH_LIMIT), x))
    return tirx.Let(near, limited, _odd_quotient(near, TANH_NUMERATOR, TANH_DENOMINATOR))


def erf(x: Expr) -> Expr:
    """The error function, of GELU: an odd polynomial over an even one, and exactly 1 where that falls short of it."""
    quotient = _odd_quotient(x, ERF_NUMERATOR, ERF_DENOMINATOR)
    below = tirx.Select(x < number(-ERF_LIMIT), number(-1.0), quotient)
    return tirx.Select(x > number(ERF_LIMIT), number(1.0), below)


def _odd_quotient(x: Expr, numerator: tuple[float, ...], denominator: tuple[float, ...]) -> Expr:
    square = tirx.Var("square", "float32")
    quotient = x * polynomial(numerator, square) / polynomial(denominator, square)
    return tirx.Let(square, x * x, quotient)


def power(x: Expr, exponent: Expr) -> Expr | None:
    """x to the power of a multiple of 1/4, as a product of square roots; None for other exponents."""
    quarters = quarters_of(exponent)
    if quarters is None:
        return None
    integer, rest = divmod(quarters, 4)
    if not rest:
        return math.prod([x] * (integer - 1), start=x)
    # Unlike other numbers below 0, -infinity has such a power: infinity.
    base, root = tirx.Var("base", "float32"), tirx.Var("root", "float32")
    factors = [base] * integer + [root] * (rest >= 2) + [tirx.sqrt(root)] * (rest % 2)
    product = tirx.Let(root, tirx.sqrt(base), math.prod(factors[1:], start=factors[0]))
    return tirx.Let(base, tirx.Select(x < number(-LARGEST), number(math.inf), x), product)


def quarters_of(exponent: Expr) -> int | None:
    """How many quarters an exponent is; None where they are many, or no constant."""
    quarters = 4 * float(exponent.value) if isinstance(exponent, tirx.FloatImm) else 0.0
    return int(quarters) if 0 < quarters <= MAX_QUARTERS and not quarters % 1 else None


def rsqrt(x: Expr) -> Expr:
    """The reciprocal of the square root."""
    return number(1.0) / tirx.sqrt(x)
