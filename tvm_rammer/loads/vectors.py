"""Vectors of conditions, as TVM's code generator for CUDA prints them right.

In C a vector of conditions is one of `ushort`, and has a name of that type where comparisons make it. A condition that
all elements share TVM gives the type of the elements that are chosen by it, as in `float4 v = make_ushort4(...)`, which
no compiler takes; and `!` it has for scalars only. Here both become comparisons.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, PrimType

from ..define_arithmetic.values import lanes_of


def with_compared_conditions(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Compare numbers where vectors of conditions are negated, or one is broadcast to be that of a choice.

    Parameters
    ----------
    func : tirx.PrimFunc
        A device function on which no simplifying pass will run: it would compare before it broadcasts.
    """
    return func.with_body(
        tvm_ffi.structural_map(func.body, [(tirx.Not, _negated), (tirx.Select, _chosen)], order="post")
    )


def _negated(node: tirx.Not) -> Expr:
    if lanes_of(node) == 1:
        return node
    number = tirx.Cast(PrimType(f"int32x{lanes_of(node)}"), node.a)
    return tirx.EQ(number, _zeros(number))


def _chosen(node: tirx.Select) -> Expr:
    if not isinstance(node.condition, tirx.Broadcast):
        return node
    number = tirx.Cast(PrimType("int32"), node.condition.value)
    holds = tirx.Broadcast(number, node.condition.lanes)
    return tirx.Select(tirx.NE(holds, _zeros(holds)), node.true_value, node.false_value)


def _zeros(number: Expr) -> Expr:
    return tirx.Broadcast(tirx.const(0, "int32"), lanes_of(number))
