"""Running sums and products: along the axis once on a CPU, and as sums over blocks of it on a GPU."""

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from tvm import relax, te, tirx
from tvm.ir import Call, Expr
from tvm.script import tirx as T

from ...bindings import dtype_of, static_shape
from ..products.widen_halves import HALVES

SCANS = ("relax.cumsum", "relax.cumprod")

BLOCK = 32
"""Elements of a block. Each result is a reduction over as many, and each level has so many times fewer elements."""


def one_by_one(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A running sum or product on a CPU.

    TVM's own function is parallel in itself, so it is no rOperator, and it walks along the axis for each element
    before and after it: along another axis than the last one each step is in another cache line.
    """
    if dtype_of(call.ty) in HALVES:
        return _rounded(bb, call)
    if not isinstance(call.args[0].ty.shape, relax.ShapeExpr):
        return call  # TVM's form of it, which comes after
    view = _view_of(call)
    product = call.op.name == "relax.cumprod"
    function = _running(view, dtype_of(call.args[0].ty), dtype_of(call.ty), product, bool(call.attrs.exclusive))
    name = bb.add_func(function, call.op.name.removeprefix("relax."))
    flat = bb.emit(relax.op.reshape(call.args[0], view))
    made = bb.emit(relax.call_tir(name, [flat], out_ty=relax.TensorType(view, dtype_of(call.ty))))
    return relax.op.reshape(made, call.ty.shape)


def _rounded(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """One of half precision is of float32, and rounded: in its own type a sum of ones stays at 2048."""
    make = relax.op.cumprod if call.op.name == "relax.cumprod" else relax.op.cumsum
    wide = make(call.args[0], call.attrs.axis, "float32", bool(call.attrs.exclusive))
    return relax.op.astype(bb.emit(wide), dtype_of(call.ty))


def _view_of(call: Call) -> tuple[Expr, Expr, Expr]:
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


def by_blocks(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A running sum or product on a GPU.

    TVM's own function goes up and down a tree of the elements by itself, so no rTask can be cut from it, and TVM's
    simplifier does not come to an end with some of them. Reductions are rOperators as all others are. An axis of n
    elements takes two of them for each power of BLOCK in n, and some 2 BLOCK n additions, which wait for one another
    BLOCK at a time.
    """
    if dtype_of(call.ty) in HALVES:
        return _rounded(bb, call)
    if static_shape(call.args[0].ty) is None:
        return call  # TVM's form of it, which comes after
    flat = bb.emit(relax.op.reshape(call.args[0], _view_of(call)))
    found = _up_to_each(bb, flat, dtype_of(call.ty), call.op.name == "relax.cumprod", bool(call.attrs.exclusive))
    return relax.op.reshape(found, call.ty.shape)


def _up_to_each(bb: relax.BlockBuilder, x: relax.Var, dtype: str, product: bool, exclusive: bool) -> relax.Var:
    """What the elements up to each one come to, along the middle one of three axes.

    Parameters
    ----------
    x : relax.Var
        Of shape [before, extent, after].
    dtype : str
        In which they are added or multiplied.
    product, exclusive : bool
        As for a CPU.
    """
    before, extent, after = static_shape(x.ty) or ()
    blocks, name = -(-extent // BLOCK), "cumprod" if product else "cumsum"
    start, operation = tirx.const(int(product), dtype), operator.mul if product else operator.add
    reducer = te.comm_reducer(lambda a, b: operation(a, b), lambda _: start)

    def of_block(x: te.Tensor, block: Expr, last: Expr, index: tuple[Expr, Expr]) -> Expr:
        """What the elements of a block come to that are not behind the last one."""
        r = te.reduce_axis((0, min(BLOCK, extent)), "r")
        at = block * BLOCK + r
        value = x(index[0], at, index[1]).astype(dtype)
        return reducer(tirx.if_then_else(at <= last, value, start), axis=r)

    def within(x: te.Tensor) -> te.Tensor:
        return te.compute(
            (before, extent, after),
            lambda i, j, k: of_block(x, tirx.floordiv(j, BLOCK), j - int(exclusive), (i, k)),
            name=name,
        )

    def totals(x: te.Tensor) -> te.Tensor:
        return te.compute(
            (before, blocks, after),
            lambda i, j, k: of_block(x, j, tirx.const(extent - 1, "int64"), (i, k)),
            name=f"{name}_of_blocks",
        )

    def joined(ahead: te.Tensor, own: te.Tensor) -> te.Tensor:
        return te.compute(
            (before, extent, after),
            lambda i, j, k: operation(ahead(i, tirx.floordiv(j, BLOCK), k), own(i, j, k)),
            name=f"{name}_joined",
            tag="injective",
        )

    own = bb.emit(bb.call_te(within, x, primfunc_name_hint=name))
    if blocks <= 1:
        return own
    ahead = _up_to_each(
        bb, bb.emit(bb.call_te(totals, x, primfunc_name_hint=f"{name}_of_blocks")), dtype, product, True
    )
    return bb.emit(bb.call_te(joined, ahead, own, primfunc_name_hint=f"{name}_joined"))
