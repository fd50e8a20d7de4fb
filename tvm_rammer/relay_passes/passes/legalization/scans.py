"""Running sums and products: one function that goes along an axis once, all that lies after the axis side by side."""

import math
from typing import Any

from tvm import relax, tirx
from tvm.ir import Call
from tvm.script import tirx as T

from ...bindings import dtype_of, static_shape
from .stock import Legalization


def scans() -> dict[str, Legalization]:
    """Legalizations for a CPU by the operator's name.

    TVM's own function is parallel in itself, so it is no rOperator, and it walks along the axis for each element
    before and after it: along another axis than the last one each step is in another cache line.
    """
    return {"relax.cumsum": _legalize, "relax.cumprod": _legalize}


def _legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    shape = static_shape(call.args[0].ty)
    if shape is None or 0 in shape:
        return call  # TVM's form of it, which comes after
    axis = call.attrs.axis
    at, sizes = (0, (math.prod(shape),)) if axis is None else (int(axis) % len(shape), shape)
    view = (math.prod(sizes[:at]), sizes[at], math.prod(sizes[at + 1 :]))
    product = call.op.name == "relax.cumprod"
    function = _running(view, dtype_of(call.args[0].ty), dtype_of(call.ty), product, bool(call.attrs.exclusive))
    name = bb.add_func(function, call.op.name.removeprefix("relax."))
    flat = bb.emit(relax.op.reshape(call.args[0], view))
    made = bb.emit(relax.call_tir(name, [flat], out_ty=relax.TensorType(view, dtype_of(call.ty))))
    return relax.op.reshape(made, call.ty.shape)


def _running(view: tuple[int, int, int], dtype: str, of: str, product: bool, exclusive: bool) -> tirx.PrimFunc:
    """A function of x [before, extent, after]; its result of type `of` is what the elements up to each one come to.

    Parameters
    ----------
    view : tuple of int
    dtype, of : str
        Of the elements, and of the results.
    product : bool
        Whether they are multiplied, and not added.
    exclusive : bool
        Whether an element does not count for itself.
    """
    before, extent, after = (tirx.const(n, "int64") for n in view)
    skipped = int(exclusive)

    def joined(total: Any, value: Any) -> Any:
        value = value.astype(of)
        return total * value if product else total + value

    @T.prim_func(private=True)  # type: ignore[untyped-decorator]  # TVM's are
    def running(a: T.handle, b: T.handle) -> None:
        x = T.match_buffer(a, view, dtype)
        y = T.match_buffer(b, view, of)
        for i in T.serial(before):
            for k in T.serial(after):
                y[i, 0, k] = T.Cast(of, int(product)) if exclusive else T.Cast(of, x[i, 0, k])
            for j in T.serial(extent - 1):
                for k in T.serial(after):
                    y[i, j + 1, k] = joined(y[i, j, k], x[i, j + 1 - skipped, k])

    return running
