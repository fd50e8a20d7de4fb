"""exp, tanh, sigmoid and erf as arithmetic, which LLVM vectorises; calls of the C library stay scalar.

exp is the polynomial of the Cephes library (S. Moshier, expf). tanh is the rational function of Eigen and ONNX Runtime,
with a relative error below 3e-7. erf is a minimax rational function that was fitted for this file, with a relative
error below 4e-7.
"""

import math
from collections.abc import Callable

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr

from ..analysis.variables import uses

LOWEST, HIGHEST = -87.3365, 88.72283
"""Beyond these, exp is 0 (numbers below 2^-126 are rounded to it) and infinite in float32."""
LOG2_E, LN2_HIGH, LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
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
TINY_SCALE = 2.0**64
"""Numbers below its reciprocal, those below 2^-126 too, times it have a reciprocal in float32."""
MAX_QUARTERS = 16
"""Powers whose exponent is at most so many quarters become products of square roots."""


def vector_math(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Replace the calls of exp, tanh, sigmoid, erf and of powers with simple exponents on float32.

    Not where numbers are rounded to bfloat16: that repeats what is rounded (`define_arithmetic`), and a name that the
    formulas bind must not be bound twice.
    """
    if _rounds_to_bfloat16(func):
        return func
    formulas: dict[str, Callable[..., Expr | None]] = {
        "tirx.exp": exp,
        "tirx.tanh": tanh,
        "tirx.sigmoid": sigmoid,
        "tirx.erf": erf,
        "tirx.pow": power,
    }

    def rewrite(call: Call) -> Expr:
        formula = formulas.get(getattr(call.op, "name", ""))
        if formula is None or str(call.args[0].ty.dtype) != "float32":
            return call
        # A variable, since the formulas use their argument several times, and calls nest.
        x = tirx.Var("x", "float32")
        value = formula(x, *call.args[1:])
        return call if value is None else tirx.Let(x, call.args[0], value)

    return func.with_body(tvm_ffi.structural_map(func.body, (Call, rewrite), order="post"))


def reciprocals(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Multiply by the reciprocal of a divisor that is constant along a row, instead of dividing each element.

    The result may differ in its last bit; a function that rounds divides, or a quantised number would be another one.
    """
    if _calls(func.body, "round", "nearbyint", "floor", "ceil", "trunc"):
        return func
    of_powers = _calls(func.body, "exp")

    def in_block(block: s_tir.SBlock) -> s_tir.SBlock:
        axes = [axis.var for axis in block.iter_vars if not _is_one(axis.dom.extent)]
        if not axes or not isinstance(block.body, tirx.BufferStore):
            return block

        def divide(node: tirx.Div) -> Expr:
            if str(node.a.ty.dtype) != "float32" or not uses(node.a, axes[-1]) or uses(node.b, axes[-1]):
                return node
            if of_powers or _is_zero_or_large(node.b):
                return node.a * (_float(1.0) / node.b)
            return _divide_by_reciprocal(node.a, node.b)

        return tvm_ffi.structural_map(block, (tirx.Div, divide), order="post")

    return func.with_body(tvm_ffi.structural_map(func.body, (s_tir.SBlock, in_block), order="post"))


def _is_one(extent: Expr) -> bool:
    """Whether an axis has one step; how many those of an adaptive pool's windows have depends on the window."""
    return isinstance(extent, tirx.IntImm) and int(extent) == 1


def _is_zero_or_large(divisor: Expr) -> bool:
    """Whether a divisor, unless it is 0, is surely so large that its reciprocal is finite."""
    if isinstance(divisor, tirx.FloatImm):
        return abs(float(divisor.value)) * TINY_SCALE >= 1
    counted = isinstance(divisor, tirx.Cast) and "int" in str(divisor.value.ty.dtype)
    return counted or _calls(divisor, "sqrt")


def _divide_by_reciprocal(dividend: Expr, divisor: Expr) -> Expr:
    """Both are scaled where the divisor is so near to 0 that its reciprocal might be infinite."""
    size = tirx.Select(divisor < _float(0.0), _float(0.0) - divisor, divisor)
    scale = tirx.Select(size < _float(1 / TINY_SCALE), _float(TINY_SCALE), _float(1.0))
    return dividend * scale * (_float(1.0) / (divisor * scale))


def _rounds_to_bfloat16(func: tirx.PrimFunc) -> bool:
    found: list[bool] = []

    def cast(node: tirx.Cast) -> None:
        found.append("bfloat16" in f"{node.ty.dtype} {node.value.ty.dtype}")

    tvm_ffi.structural_walk(func.body, [(tirx.Cast, cast)], order="pre")
    return any(found)


def _calls(value: tirx.Stmt | Expr, *names: str) -> bool:
    """Whether any function of these is called."""
    found: list[bool] = []
    known = [f"tirx.{name}" for name in names]
    tvm_ffi.structural_walk(value, [(Call, lambda c: found.append(getattr(c.op, "name", "") in known))], order="pre")
    return any(found)


def _float(value: float) -> Expr:
    return tirx.FloatImm("float32", value)


def _polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    value = _float(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + _float(c)
    return value


def _bits(x: Expr) -> Expr:
    return tirx.reinterpret("int32", x)


def exp(x: Expr) -> Expr:
    """e^x = 2^n e^rest: a polynomial of the rest, with n added to the bits of its exponent."""
    shifted, value = tirx.Var("shifted", "float32"), tirx.Var("value", "float32")
    n = shifted - _float(SHIFT)
    rest = x - n * _float(LN2_HIGH) - n * _float(LN2_LOW)
    power = _polynomial(EXP, rest) * (rest * rest) + rest + _float(1.0)
    scaled = tirx.reinterpret("float32", _bits(value) + (_bits(shifted) << tirx.IntImm("int32", 23)))
    # A NaN fails both comparisons. Its shifted bits are zero, so that the sum of bits is a NaN still.
    limited = tirx.Select(x > _float(HIGHEST), _float(math.inf), tirx.Select(x < _float(LOWEST), _float(0.0), scaled))
    return tirx.Let(shifted, x * _float(LOG2_E) + _float(SHIFT), tirx.Let(value, power, limited))


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + e^-x)."""
    return _float(1.0) / (_float(1.0) + exp(_float(0.0) - x))


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent: an odd polynomial over an even one."""
    near = tirx.Var("near", "float32")
    # This order of arguments propagates a NaN.
    limited = tirx.max(_float(-TANH_LIMIT), tirx.min(_float(TANH_LIMIT), x))
    return tirx.Let(near, limited, _odd_quotient(near, TANH_NUMERATOR, TANH_DENOMINATOR))


def erf(x: Expr) -> Expr:
    """The error function, of GELU: an odd polynomial over an even one, and exactly 1 where that falls short of it."""
    quotient = _odd_quotient(x, ERF_NUMERATOR, ERF_DENOMINATOR)
    below = tirx.Select(x < _float(-ERF_LIMIT), _float(-1.0), quotient)
    return tirx.Select(x > _float(ERF_LIMIT), _float(1.0), below)


def _odd_quotient(x: Expr, numerator: tuple[float, ...], denominator: tuple[float, ...]) -> Expr:
    square = tirx.Var("square", "float32")
    quotient = x * _polynomial(numerator, square) / _polynomial(denominator, square)
    return tirx.Let(square, x * x, quotient)


def power(x: Expr, exponent: Expr) -> Expr | None:
    """x to the power of a multiple of 1/4, as a product of square roots; None for other exponents."""
    quarters = 4 * float(exponent.value) if isinstance(exponent, tirx.FloatImm) else 0.0
    if not 0 < quarters <= MAX_QUARTERS or quarters % 1:
        return None
    integer, rest = divmod(int(quarters), 4)
    root = tirx.Var("root", "float32")
    factors = [x] * integer + [root] * (rest >= 2) + [tirx.sqrt(root)] * (rest % 2)
    return tirx.Let(root, tirx.sqrt(x), math.prod(factors[1:], start=factors[0]))
