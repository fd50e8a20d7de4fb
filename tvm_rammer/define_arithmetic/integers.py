"""Quotients, remainders and shifts of integers, defined for all numbers."""

from tvm import tirx
from tvm.ir import Expr
from tvm.tirx.buffer import BufferType

from .values import bit_width, element, is_float, repeated, same, scalar


def sizes_of(func: tirx.PrimFunc) -> set[tirx.Var]:
    """Variables that are a whole dimension of an argument, so none is below 0."""
    buffers = [param for param in func.params if isinstance(param.ty, BufferType)]
    return {size for buffer in buffers for size in buffer.shape if isinstance(size, tirx.Var)}


def quotient_by(node: tirx.Div | tirx.FloorDiv, sizes: set[tirx.Var]) -> Expr:
    """By 0 it is 0 by 1. No choice is around the division: TVM would take its condition for known within."""
    if not _may_fail(node):
        return node
    zero = same(node.b, 0)

    def quotient(a: Expr, b: Expr) -> Expr:
        return type(node)(tirx.Select(tirx.EQ(b, zero), zero, a), _divisor(a, b, sizes))

    return repeated(quotient, node.a, node.b)


def remainder_by(node: tirx.Mod | tirx.FloorMod, sizes: set[tirx.Var]) -> Expr:
    """By 1, in the place of what it cannot be divided by: that is 0."""
    if not _may_fail(node):
        return node
    return repeated(lambda a, b: type(node)(a, _divisor(a, b, sizes)), node.a, node.b)


def _may_fail(node: tirx.Div | tirx.FloorDiv | tirx.Mod | tirx.FloorMod) -> bool:
    divisor = element(node.b)
    return not is_float(node) and not (isinstance(divisor, tirx.IntImm) and divisor.value not in (0, -1))


def _divisor(a: Expr, b: Expr, sizes: set[tirx.Var]) -> Expr:
    """The divisor `b` of `a`, or 1 where the quotient by it is not defined.

    A size is never -1, so `a` need not be repeated: a flat index is divided by one size after the other, and would
    double with each.
    """
    if b in sizes:
        return tirx.max(b, same(b, 1))
    undefined = tirx.EQ(b, same(b, 0))
    if scalar(b).startswith("int"):
        # By its bits: TVM knows of no integer that is as small, and would take `a == least` for false.
        is_least = tirx.EQ(a ^ same(a, tirx.min_value(scalar(a)).value), same(a, 0))
        undefined = tirx.Or(undefined, tirx.And(tirx.EQ(b, same(b, -1)), is_least))
    return tirx.Select(undefined, same(b, 1), b)


def left_shift(node: tirx.LShift) -> Expr:
    if _stays_within(node):
        return node
    return repeated(lambda b: tirx.Select(_within(b), node.a << b, same(node, 0)), node.b)


def right_shift(node: tirx.RShift) -> Expr:
    if _stays_within(node):
        return node
    if not scalar(node).startswith("int"):
        return repeated(lambda b: tirx.Select(_within(b), node.a >> b, same(node, 0)), node.b)
    return repeated(lambda b: node.a >> tirx.Select(_within(b), b, same(b, bit_width(node) - 1)), node.b)


def _stays_within(node: tirx.LShift | tirx.RShift) -> bool:
    distance = element(node.b)
    return isinstance(distance, tirx.IntImm) and 0 <= distance.value < bit_width(node)


def _within(distance: Expr) -> Expr:
    inside = distance < same(distance, bit_width(distance))
    return tirx.And(distance >= same(distance, 0), inside) if scalar(distance).startswith("int") else inside
