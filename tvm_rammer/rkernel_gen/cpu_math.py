"""exp, tanh and sigmoid as arithmetic, so that LLVM makes vectors of them: calls of the C library stay scalar.

Polynomials and constants are those of the Cephes library (S. Moshier, expf and tanhf); relative error below 3e-7.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr

LOWEST, HIGHEST = -104.0, 89.0
"""Beyond these, exp is 0 and infinite in float32."""
LOG2_E, LN2_HIGH, LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
TANH_SMALL = 0.625


def vector_math(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Replace the calls of exp, tanh and sigmoid on float32."""
    forms = {"tirx.exp": exp, "tirx.tanh": tanh, "tirx.sigmoid": sigmoid}

    def rewrite(call: Call) -> Expr:
        form = forms.get(getattr(call.op, "name", ""))
        if form is None or str(call.args[0].ty.dtype) != "float32":
            return call
        # Bound to a name: the forms use their argument many times, and functions nest.
        x = tirx.Var("x", "float32")
        return tirx.Let(x, call.args[0], form(x))

    return func.with_body(tvm_ffi.structural_map(func.body, (Call, rewrite), order="post"))


def _float(value: float) -> Expr:
    return tirx.FloatImm("float32", value)


def _polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    value = _float(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + _float(c)
    return value


def _power_of_two(n: Expr) -> Expr:
    return tirx.reinterpret("float32", (n + tirx.IntImm("int32", 127)) << tirx.IntImm("int32", 23))


def exp(x: Expr) -> Expr:
    """e to the x: 2^n times a polynomial of the rest; 2^n in two factors, as 2^128 is no float32."""
    # In this order of arguments the limits let a NaN pass.
    limited = tirx.max(_float(LOWEST), tirx.min(_float(HIGHEST), x))
    whole = tirx.floor(limited * _float(LOG2_E) + _float(0.5))
    rest = limited - whole * _float(LN2_HIGH) - whole * _float(LN2_LOW)
    n = tirx.Cast("int32", whole)
    half = n >> tirx.IntImm("int32", 1)
    value = _polynomial(EXP, rest) * (rest * rest) + rest + _float(1.0)
    return value * _power_of_two(half) * _power_of_two(n - half)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + e^-x)."""
    return _float(1.0) / (_float(1.0) + exp(_float(0.0) - x))


def tanh(x: Expr) -> Expr:
    """An odd polynomial near 0; elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x."""
    square = x * x
    small = _polynomial(TANH, square) * square * x + x
    size = tirx.Select(x < _float(0.0), _float(0.0) - x, x)
    large = _float(1.0) - _float(2.0) / (exp(size + size) + _float(1.0))
    signed = tirx.Select(x < _float(0.0), _float(0.0) - large, large)
    return tirx.Select(size < _float(TANH_SMALL), small, signed)
