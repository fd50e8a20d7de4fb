"""Largest and smallest numbers from infinity on, as reductions that TVM's schedules can take apart."""

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr

from ...define_arithmetic import larger


@cache
def know_extremes() -> None:
    """Tell TVM of maxima that begin with minus infinity, of those that pass over NaN, and of minima that begin with
    infinity; once a process.

    `rfactor` takes a reduction apart if it knows what leaves every number as it is. Of a maximum TVM believes that
    this is the least finite number, and refuses those that begin with what is.
    """
    register = tvm.get_global_func("s_tir.schedule.RegisterReducer")
    for choose, neutral in ((tirx.max, -math.inf), (tirx.min, math.inf), (larger, -math.inf)):
        register(1, *map(_kept, _functions(choose, neutral)))


def _functions(choose: Callable[[Expr, Expr], Expr], neutral: float) -> tuple[Callable[..., list[Expr]], ...]:
    """What combines two numbers, and what the first one is combined with; both of lists of one number."""

    def combine(old: Sequence[Expr], new: Sequence[Expr]) -> list[Expr]:
        return [choose(old[0], new[0])]

    def begin(numbers: Sequence[Expr]) -> list[Expr]:
        dtype = str(numbers[0].ty.dtype)
        if not dtype.startswith(("float", "bfloat")):  # TVM asks for every type
            return list(numbers)  # with which no reduction begins
        return [tirx.const(neutral, dtype)]

    return combine, begin


def _kept(function: Callable[..., list[Expr]]) -> tvm_ffi.Function:
    """A function that is never freed: TVM lets go of what is registered when Python is no more."""
    made: tvm_ffi.Function = tvm_ffi.convert(function)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made
