"""Running sums and products: one function that goes along an axis once, all that lies after the axis side by side."""

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from tvm import relax, tirx
from tvm.ir import Call, Expr
from tvm.script import tirx as T

from ...bindings import dtype_of
from .stock import Legalization


def scans() -> dict[str, Legalization]:
    """Legalizations for a CPU by the operator's name.

    TVM's own function is parallel in itself, so it is no rOperator, and it walks along the axis for each element
    before and after it: along another axis than the last one each step is in another cache line.
    """
    return {"relax.cumsum": _legalize, "relax.cumprod": _legalize}


def _legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    if not isinstance(call.args[0].ty.shape, relax.ShapeExpr):
        return call  # TVM's form of it, which comes after
    view = view_of(call)
    product = call.op.name == "relax.cumprod"
    function = _running(view, dtype_of(call.args[0].ty), dtype_of(call.ty), product, bool(call.attrs.exclusive))
    name = bb.add_func(function, call.op.name.removeprefix("relax."))
    flat = bb.emit(relax.op.reshape(call.args[0], view))
    made = bb.emit(relax.call_tir(name, [flat], out_ty=relax.TensorType(view, dtype_of(call.ty))))
    return relax.op.reshape(made, call.ty.shape)


def view_of(call: Call) -> tuple[Expr, Expr, Expr]:
    """What a running sum or product reads as [before, extent, after], of which it goes along the second axis."""
    shape, axis = call.args[0].ty.shape.values, call.attrs.axis
    at, sizes = (0, (_product(shape),)) if axis is None else (int(axis) % len(shape), shape)
    return _product(sizes[:at]), sizes[at], _product(sizes[at + 1 :])


def _product(sizes: Sequence[Expr]) -> Expr:
    return reduce(operator.mul, sizes, tirx.IntImm("int64", 1))


def _running(view: Sequence[Expr], dtype: str, of: str, product: bool, exclusive: bool) -> tirx.PrimFunc:
    """A function of x [before, extent, after]; its result of type `of` is what the elements up to each one come to.

    There may be no element: then nothing is written, where TVM's form writes a first one in any case.

    Parameters
    ----------
    view : sequence of Expr
        Sizes that are no numbers become variables, which the function takes from its arguments.
    dtype, of : str
        Of the elements, and of the results.
    product : bool
        Whether they are multiplied, and not added.
    exclusive : bool
        Whether an element does not count for itself.
    """
    names = ("before", "extent", "after")
    before, extent, after = sizes = tuple(
        size if isinstance(size, tirx.IntImm) else tirx.Var(name, "int64")
        for size, name in zip(view, names, strict=True)
    )
    skipped = int(exclusive)

    def joined(total: Any, value: Any) -> Any:
        value = value.astype(of)
        return total * value if product else total + value

    @T.prim_func(private=True)  # type: ignore[untyped-decorator]  # TVM's are
    def running(a: T.handle, b: T.handle) -> None:
        x = T.match_buffer(a, sizes, dtype)
        y = T.match_buffer(b, sizes, of)
        for i in T.serial(before):
            for _ in T.serial(T.min(extent, 1)):
                for k in T.serial(after):
                    y[i, 0, k] = T.Cast(of, int(product)) if exclusive else T.Cast(of, x[i, 0, k])
            for j in T.serial(extent - 1):
                for k in T.serial(after):
                    y[i, j + 1, k] = joined(y[i, j, k], x[i, j + 1 - skipped, k])

    return running
