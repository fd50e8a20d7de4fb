"""Numbers and their types, in scalars and in vectors."""

import math
from collections.abc import Callable

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, PrimType


def repeated(use: Callable[..., Expr], *operands: Expr) -> Expr:
    """`use(*operands)`, which uses them several times; those that bind names are bound to one themselves.

    TVM's analysis refuses an expression that binds a name twice, if it simplifies the two values differently.
    """
    names = [tirx.Var("operand", value.ty) if _binds(value) else value for value in operands]
    result = use(*names)
    for name, value in zip(names, operands, strict=True):
        if not name.same_as(value):
            result = tirx.Let(name, value, result)
    return result


def _binds(value: Expr) -> bool:
    found: list[tirx.Let] = []
    tvm_ffi.structural_walk(value, [(tirx.Let, found.append)], order="pre")
    return bool(found)


def equals_itself(value: Expr) -> Expr:
    """Whether a number is no NaN. TVM would take `value == value` for true; LLVM sees through this one.

    Parameters
    ----------
    value : Expr
        Of floating point, and computed twice.
    """
    value = _of_known_bits(value)
    bits = tirx.reinterpret(unsigned(value), value)
    return tirx.EQ(tirx.reinterpret(str(value.ty.dtype), bits), value)


def has_bits_of_number(value: Expr) -> Expr:
    """Whether no bit is set below an exponent of ones: the same as `equals_itself`, in integers."""
    value = _of_known_bits(value)
    all_but_sign, infinity = (1 << (bit_width(value) - 1)) - 1, _BITS_OF_INFINITY[scalar(value)]
    bits = tirx.reinterpret(unsigned(value), value)
    return (bits & same(bits, all_but_sign)) <= same(bits, infinity)


def _of_known_bits(value: Expr) -> Expr:
    """A number in a type that has its own bits where it is computed: TVM computes bfloat16 in float32."""
    wide = str(value.ty.dtype).replace("bfloat16", "float32")
    return tirx.Cast(PrimType(wide), value) if wide != str(value.ty.dtype) else value


_BITS_OF_INFINITY = {"float16": 0x7C00, "float32": 0x7F800000, "float64": 0x7FF0000000000000}


def unsigned(value: Expr) -> str:
    """The type of integers that are as wide."""
    return str(value.ty.dtype).replace("float", "uint")


def same(like: Expr, number: float) -> Expr:
    """A constant of an expression's type, which may be a vector."""
    value = tirx.const(number, scalar(like))
    lanes = lanes_of(like)
    return value if lanes == 1 else tirx.Broadcast(value, lanes)


def lanes_of(value: Expr) -> int:
    return int(str(value.ty.dtype).partition("x")[2] or 1)


def element(value: Expr) -> Expr:
    return value.value if isinstance(value, tirx.Broadcast) else value


def is_number(value: Expr) -> bool:
    """Whether it is a constant other than NaN."""
    value = element(value)
    return isinstance(value, tirx.FloatImm) and not math.isnan(value.value)


def is_float(value: Expr) -> bool:
    return scalar(value).startswith(("float", "bfloat"))


def bit_width(value: Expr) -> int:
    return int(scalar(value).lstrip("abcdefghijklmnopqrstuvwxyz"))


def scalar(value: Expr) -> str:
    """The name of an expression's type, or of its elements' where it is a vector."""
    return str(value.ty.dtype).partition("x")[0]
