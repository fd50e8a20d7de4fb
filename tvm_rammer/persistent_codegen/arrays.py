"""Sizes of arrays in TIR, and variables that point to them."""

import math

from tvm import tirx
from tvm.ir import PointerType, PrimType

from ..ir import ITEM_BYTES


def item_bytes(dtype: str) -> int:
    """Size of an element; a vector type such as float32x2 has several scalars."""
    scalar, _, length = dtype.partition("x")
    return ITEM_BYTES[scalar] * int(length or 1)


def scalar_of(dtype: str) -> str:
    """The type of the scalars of an element."""
    return dtype.partition("x")[0]


def array_bytes(array: tirx.Buffer) -> int:
    """Size of a TIR buffer of static shape."""
    return math.prod(int(extent) for extent in array.shape) * item_bytes(str(array.dtype))


def pointer_variable(name: str, dtype: str, scope: str = "global") -> tirx.Var:
    """Make a variable that points to the array called `name`: `{name}_ptr`."""
    return tirx.Var(f"{name}_ptr", PointerType(PrimType(dtype), scope))
