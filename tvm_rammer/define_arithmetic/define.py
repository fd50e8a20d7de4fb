"""The pass that defines the arithmetic of functions."""

import math
from collections.abc import Callable
from functools import partial

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.script import tirx as T

from .extremes import extreme as extreme_on_cpu
from .extremes import with_long_extremes
from .gpu_extremes import extreme_on_gpu
from .gpu_powers import power_on_gpu
from .integers import left_shift, quotient_by, remainder_by, right_shift, sizes_of
from .values import has_bits_of_number, is_float, repeated, same, scalar, unsigned


def DefineArithmetic(kind: str) -> tvm.transform.Pass:
    """Make the pass that calls `define_arithmetic` for every PrimFunc.

    Parameters
    ----------
    kind : {"llvm", "cuda"}
        Of the target.
    """

    @tvm.transform.module_pass(opt_level=0, name="DefineArithmetic")  # type: ignore[untyped-decorator]  # TVM's are
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        for var, func in mod.functions.items():
            if isinstance(func, tirx.PrimFunc):
                mod.update_func(var, define_arithmetic(func, kind))
        return mod

    return run


def define_arithmetic(func: tirx.PrimFunc, kind: str) -> tirx.PrimFunc:
    """Rewrite what is undefined, or drops NaN, for some values. What constants rule out stays as it is.

    Parameters
    ----------
    func : tirx.PrimFunc
        For a GPU, one that TVM has lowered up to its split of host and device: before that it knows reductions over
        threads by their `max`, and cannot eliminate common subexpressions where there is a `Let`.
    kind : {"llvm", "cuda"}
        Of the target.
    """
    if kind == "llvm":
        func = func.with_body(with_long_extremes(func.body))
    extreme = extreme_on_gpu if kind == "cuda" else extreme_on_cpu
    sizes = sizes_of(func)
    rules: list[tuple[type, Callable[..., Expr]]] = [
        (tirx.Max, extreme),
        (tirx.Min, extreme),
        (tirx.NE, _not_equal),
        *((operator, partial(quotient_by, sizes=sizes)) for operator in (tirx.Div, tirx.FloorDiv)),
        *((operator, partial(remainder_by, sizes=sizes)) for operator in (tirx.Mod, tirx.FloorMod)),
        (tirx.LShift, left_shift),
        (tirx.RShift, right_shift),
    ]
    if kind == "llvm":
        rules.append((tirx.Cast, _cast))
    else:
        rules += [(Call, power_on_gpu), (tirx.FloatImm, _without_number)]
    return func.with_body(tvm_ffi.structural_map(func.body, rules, order="post"))


def _without_number(node: tirx.FloatImm) -> Expr:
    """Infinity and NaN of bfloat16 from float32: TVM writes `inff` for them, which CUDA does not know."""
    if scalar(node) != "bfloat16" or math.isfinite(node.value):
        return node
    return T.call_pure_extern("bfloat16", "__float2bfloat16_rn", tirx.FloatImm("float32", node.value))


def _cast(node: tirx.Cast) -> Expr:
    """To bfloat16 by the bits of float32: to the nearest number, or the one of two whose last bit is 0."""
    if not scalar(node).startswith("bfloat16") or scalar(node.value).startswith("bfloat16"):
        return node
    dtype = str(node.ty.dtype).replace("bfloat16", "float32")
    wide = node.value if str(node.value.ty.dtype) == dtype else tirx.Cast(tvm.ir.PrimType(dtype), node.value)
    return repeated(lambda value: tirx.Cast(node.ty, _rounded(value)), wide)


def _rounded(wide: Expr) -> Expr:
    """A number of float32 with the lower half of its bits rounded away."""
    bits = tirx.reinterpret(unsigned(wide), wide)
    half = ((bits >> same(bits, 16)) & same(bits, 1)) + same(bits, 0x7FFF)
    rounded = tirx.reinterpret(str(wide.ty.dtype), (bits + half) & same(bits, 0xFFFF0000))
    return tirx.Select(has_bits_of_number(wide), rounded, wide)


def _not_equal(node: tirx.NE) -> Expr:
    """In LLVM TVM's test is false of NaN, and it would make that test of a negated one for equality."""
    if not is_float(node.a):
        return node
    equal = tirx.EQ(node.a, node.b)
    return tirx.Select(equal, same(equal, False), same(equal, True))
