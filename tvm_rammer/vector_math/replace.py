"""Formulas in the place of calls."""

from collections.abc import Callable

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr

from ..loads.bodies import operation
from .angles import acos, asin, atan, cos, sin, tan
from .classes import isfinite, isinf, isnan
from .logarithms import acosh, asinh, atanh, log, log1p
from .powers import RAISED, erf, exp, power, rsqrt, sigmoid, tanh
from .terms import nearest

FORMULAS: dict[str, Callable[..., Expr | None]] = {
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan, "atanh": atanh, "cos": cos, "erf": erf,
    "exp": exp, "isfinite": isfinite, "isinf": isinf, "isnan": isnan, "log": log, "log1p": log1p, "nearbyint": nearest,
    "pow": power, "rsqrt": rsqrt, "sigmoid": sigmoid, "sin": sin, "tan": tan, "tanh": tanh,
}  # fmt: skip
"""By the name of a function: from its arguments to its value; None where there is no formula for these arguments."""


def vector_math(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Replace the calls of `FORMULAS` on float32, of powers those with simple exponents.

    An exponential times 2^64 is one formula, which has a result also where the exponential by itself is below 2^-126.

    Not in values that statements bind to names: TVM's simplifier puts them into all that is computed from them, which
    of formulas of formulas takes for ever. Nor where numbers are rounded to bfloat16: that repeats what is rounded
    (`define_arithmetic`), and a name that the formulas bind must not be bound twice.
    """
    if _rounds_to_bfloat16(func):
        return func

    def raise_power(node: tirx.Mul) -> Expr:
        power, factor = node.a, node.b
        is_raised = isinstance(factor, tirx.FloatImm) and factor.value == 2.0**RAISED
        if not is_raised or str(node.ty.dtype) != "float32" or not isinstance(power, Call) or operation(power) != "exp":
            return node
        return Call(power.op, [*power.args, tirx.IntImm("int32", RAISED)], ret_ty=power.ty)

    def rewrite(call: Call) -> Expr:
        formula = FORMULAS.get(operation(call))
        if formula is None or str(call.args[0].ty.dtype) != "float32":
            return call
        # A variable, since the formulas use their argument several times, and calls nest.
        x = tirx.Var("x", "float32")
        value = formula(x, *call.args[1:])
        return call if value is None else tirx.Let(x, call.args[0], value)

    bound: dict[tirx.Var, tirx.Bind] = {}
    tvm_ffi.structural_walk(func.body, (tirx.Bind, lambda node: bound.update({node.var: node})), order="pre")
    body = tvm_ffi.structural_map(func.body, (tirx.Mul, raise_power), order="post")
    rules = [(Call, rewrite), (tirx.Bind, lambda node: bound[node.var])]
    return func.with_body(tvm_ffi.structural_map(body, rules, order="post"))


def _rounds_to_bfloat16(func: tirx.PrimFunc) -> bool:
    found: list[bool] = []

    def cast(node: tirx.Cast) -> None:
        found.append("bfloat16" in f"{node.ty.dtype} {node.value.ty.dtype}")

    tvm_ffi.structural_walk(func.body, [(tirx.Cast, cast)], order="pre")
    return any(found)
