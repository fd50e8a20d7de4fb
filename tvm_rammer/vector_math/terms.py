"""What the formulas are written in."""

from collections.abc import Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr


def number(value: float) -> Expr:
    """A constant of float32."""
    return tirx.FloatImm("float32", value)


def polynomial(coefficients: Sequence[float], x: Expr) -> Expr:
    """A polynomial by Horner's scheme; the coefficient of the highest power comes first."""
    value = number(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + number(c)
    return value


def bits(x: Expr) -> Expr:
    """The bits of a number of float32 as an integer."""
    return tirx.reinterpret("int32", x)


def from_bits(x: Expr) -> Expr:
    """The number of float32 that has these bits."""
    return tirx.reinterpret("float32", x)


def nearest(x: Expr) -> Expr:
    """The nearest integer, the even one of two. TVM makes no vectors of its own `nearbyint`."""
    return tirx.call_llvm_pure_intrin(x.ty.dtype, "llvm.nearbyint", x)


def sign_of(x: Expr) -> Expr:
    """The bit that says that a number is negative or -0."""
    return bits(x) & tirx.IntImm("int32", -(1 << 31))


def with_sign_of(size: Expr, x: Expr) -> Expr:
    """A number that is not negative, negated where `x` is negative or -0."""
    return from_bits(bits(size) | sign_of(x))


def calls(value: tirx.Stmt | Expr, *names: str) -> bool:
    """Whether any function of these is called."""
    found: list[bool] = []
    known = [f"tirx.{name}" for name in names]
    tvm_ffi.structural_walk(value, [(Call, lambda c: found.append(getattr(c.op, "name", "") in known))], order="pre")
    return any(found)
