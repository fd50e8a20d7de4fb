"""Products in the place of divisions."""

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr

from ...vector_math.terms import calls, number
from ..analysis.variables import uses

LARGE = 2.0**126
"""The reciprocal of a larger number has fewer digits; of infinity it is 0, with which TVM would make 0 of NaN, too."""

TINY_SCALE = 2.0**64
"""Numbers below its reciprocal, those below 2^-126 too, times it have a reciprocal in float32."""


def reciprocals(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Multiply by the reciprocal of a divisor that is constant along a row, instead of dividing each element.

    The result may differ in its last bit; a function that rounds divides, or a quantised number would be another one.
    """
    if divides_exactly(func.body):
        return func
    of_powers = calls(func.body, "exp")

    def in_block(block: s_tir.SBlock) -> s_tir.SBlock:
        axes = [axis.var for axis in block.iter_vars if not _is_one(axis.dom.extent)]
        if not axes or not isinstance(block.body, tirx.BufferStore):
            return block

        def divide(node: tirx.Div) -> Expr:
            if str(node.a.ty.dtype) != "float32" or not uses(node.a, axes[-1]) or uses(node.b, axes[-1]):
                return node
            if isinstance(node.b, tirx.FloatImm) and not abs(node.b.value) < LARGE:
                return node
            if of_powers or _is_zero_or_large(node.b):
                return node.a * (number(1.0) / node.b)
            return _divide_by_reciprocal(node.a, node.b)

        return tvm_ffi.structural_map(block, (tirx.Div, divide), order="post")

    return func.with_body(tvm_ffi.structural_map(func.body, (s_tir.SBlock, in_block), order="post"))


def divides_exactly(code: Expr | tirx.Stmt) -> bool:
    """Whether code rounds numbers: then quotients stay what they are."""
    return calls(code, "round", "nearbyint", "floor", "ceil", "trunc")


def _is_one(extent: Expr) -> bool:
    """Whether an axis has one step; how many those of an adaptive pool's windows have depends on the window."""
    return isinstance(extent, tirx.IntImm) and int(extent) == 1


def _is_zero_or_large(divisor: Expr) -> bool:
    """Whether a divisor, unless it is 0, is surely so large that its reciprocal is finite."""
    if isinstance(divisor, tirx.FloatImm):
        return abs(float(divisor.value)) * TINY_SCALE >= 1
    counted = isinstance(divisor, tirx.Cast) and "int" in str(divisor.value.ty.dtype)
    return counted or calls(divisor, "sqrt")


def _divide_by_reciprocal(dividend: Expr, divisor: Expr) -> Expr:
    """Both are scaled where the divisor is so near to 0 that its reciprocal might be infinite."""
    size = tirx.Select(divisor < number(0.0), number(0.0) - divisor, divisor)
    scale = tirx.Select(size < number(1 / TINY_SCALE), number(TINY_SCALE), number(1.0))
    return dividend * scale * (number(1.0) / (divisor * scale))
