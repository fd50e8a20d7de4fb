"""Largest and smallest numbers, where TVM's own legalizations begin with a number that is not infinite, or lose NaN."""

import math

import numpy as np
import tvm_ffi
from tvm import relax, te, tirx
from tvm.ir import Call

from ....define_arithmetic import equals_itself
from .stock import Legalization, stock, widened

_INFINITE = {"max": math.inf, "min": -math.inf}


def extremes() -> dict[str, Legalization]:
    """Legalizations by the operator's name.

    The largest and smallest of numbers that are all infinite is infinite: TVM begins with the largest finite number.
    Where the largest or smallest is looked for, NaN counts as infinite: TVM would lose it, and forget what it found
    before. Numbers of bfloat16, of which TVM knows neither the ends nor NaN, are looked at in float32.
    """
    return {
        "relax.max": _extreme("max"),
        "relax.min": _extreme("min"),
        "relax.argmax": _place_of_extreme("max"),
        "relax.argmin": _place_of_extreme("min"),
        **{f"relax.nn.max_pool{n}d": _max_pool for n in (1, 2, 3)},
    }


def _max_pool(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """TVM's function, which begins and pads with the least finite number, with minus infinity in its place."""
    dtype = str(call.args[0].ty.dtype)
    if dtype not in ("float16", "float32", "float64"):
        return stock(bb, call)
    apart = relax.BlockBuilder()
    made = stock(apart, call)
    least = float(np.finfo(dtype).min)

    def lower(number: tirx.FloatImm) -> tirx.FloatImm:
        return tirx.FloatImm(number.ty, -math.inf) if number.value == least else number

    func = apart.get()[made.args[0]]
    func = func.with_body(tvm_ffi.structural_map(func.body, [(tirx.FloatImm, lower)], order="post"))
    return relax.call_tir(bb.add_func(func, made.args[0].name_hint), made.args[1], out_ty=call.ty)


def _place_of_extreme(name: str) -> Legalization:
    """TVM begins with the farthest number, at place -1: of floating point every one is to be nearer than that.

    Integers that are all the farthest ones stay at no place, which means the first.
    """
    nearer = getattr(tirx, name)

    def legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
        dtype = str(call.args[0].ty.dtype)
        if dtype == "bfloat16":
            return widened(bb, call)
        if dtype not in ("float16", "float32", "float64"):
            place = bb.emit(stock(bb, call))
            return stock(bb, bb.normalize(relax.op.maximum(place, relax.const(0, str(call.ty.dtype)))))
        ends = np.finfo(dtype)
        start = np.nextafter(ends.min if name == "max" else ends.max, ends.dtype.type(0))
        farthest, infinite = (tirx.const(float(n), dtype) for n in (start, _INFINITE[name]))

        def number(x: tirx.Expr) -> tirx.Expr:
            return tirx.Select(equals_itself(x), nearer(farthest, x), infinite)

        def numbers(x: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *index: number(x(*index)), name="number")

        made = bb.emit(bb.call_te(numbers, call.args[0], primfunc_name_hint="number"))
        return stock(bb, bb.normalize(Call(call.op, [made], call.attrs)))

    return legalize


def _extreme(name: str) -> Legalization:
    neutral = -_INFINITE[name]
    choose = getattr(tirx, name)
    reducer = te.comm_reducer(lambda a, b: choose(a, b), lambda dtype: tirx.const(neutral, dtype), name=name)

    def legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
        dtype = str(call.args[0].ty.dtype)
        if dtype == "bfloat16":
            return widened(bb, call)
        if not dtype.startswith("float"):
            return stock(bb, call)
        rank, keeps = call.args[0].ty.ndim, bool(call.attrs.keepdims)
        given = range(rank) if call.attrs.axis is None else call.attrs.axis
        axes = sorted({int(axis) % rank for axis in given})

        def compute(x: te.Tensor) -> te.Tensor:
            along = {axis: te.reduce_axis((0, x.shape[axis]), name=f"k{axis}") for axis in axes}
            outer = [axis for axis in range(rank) if keeps or axis not in along]

            def element(*index: tirx.Var) -> object:
                place = dict(zip(outer, index, strict=True)) | along
                return reducer(x(*(place[axis] for axis in range(rank))), axis=list(along.values()))

            return te.compute([1 if axis in along else x.shape[axis] for axis in outer], element, name=f"x_red_{name}")

        return bb.call_te(compute, call.args[0], primfunc_name_hint=name)

    return legalize
