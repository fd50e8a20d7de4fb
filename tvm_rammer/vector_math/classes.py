"""Whether a number is finite, infinite or NaN, by its bits."""

from tvm import tirx
from tvm.ir import Expr

from .terms import bits

_SIZE, _INFINITE = tirx.IntImm("int32", (1 << 31) - 1), tirx.IntImm("int32", 0x7F800000)


def isnan(x: Expr) -> Expr:
    """Whether a number is NaN."""
    return bits(x) & _SIZE > _INFINITE


def isinf(x: Expr) -> Expr:
    """Whether a number is infinite."""
    return (bits(x) & _SIZE) == _INFINITE


def isfinite(x: Expr) -> Expr:
    """Whether a number is neither infinite nor NaN."""
    return bits(x) & _SIZE < _INFINITE
