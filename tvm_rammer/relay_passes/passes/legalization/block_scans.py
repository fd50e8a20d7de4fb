"""Running sums and products on a GPU: reductions over blocks of the axis, and over what the blocks come to."""

import operator

from tvm import relax, te, tirx
from tvm.ir import Call, Expr

from ...bindings import dtype_of, static_shape
from ..products.widen_halves import HALVES
from .scans import view_of
from .stock import Legalization

BLOCK = 32
"""Elements of a block. Each result is a reduction over as many, and each level has so many times fewer elements."""


def block_scans() -> dict[str, Legalization]:
    """Legalizations for a GPU by the operator's name.

    TVM's own function goes up and down a tree of the elements by itself, so no rTask can be cut from it, and TVM's
    simplifier does not come to an end with some of them. Reductions are rOperators as all others are. An axis of n
    elements takes two of them for each power of BLOCK in n, and some 2 BLOCK n additions, which wait for one another
    BLOCK at a time.
    """
    return {"relax.cumsum": _legalize, "relax.cumprod": _legalize}


def _legalize(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    if static_shape(call.args[0].ty) is None:
        return call  # TVM's form of it, which comes after
    dtype = dtype_of(call.ty)
    wide = "float32" if dtype in HALVES else dtype
    flat = bb.emit(relax.op.reshape(call.args[0], view_of(call)))
    found = _running(bb, flat, wide, call.op.name == "relax.cumprod", bool(call.attrs.exclusive))
    return relax.op.reshape(found if wide == dtype else bb.emit(relax.op.astype(found, dtype)), call.ty.shape)


def _running(bb: relax.BlockBuilder, x: relax.Var, dtype: str, product: bool, exclusive: bool) -> relax.Var:
    """What the elements up to each one come to, along the middle one of three axes.

    Parameters
    ----------
    x : relax.Var
        Of shape [before, extent, after].
    dtype : str
        In which they are added or multiplied.
    product, exclusive : bool
        As in `scans`.
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
    ahead = _running(bb, bb.emit(bb.call_te(totals, x, primfunc_name_hint=f"{name}_of_blocks")), dtype, product, True)
    return bb.emit(bb.call_te(joined, ahead, own, primfunc_name_hint=f"{name}_joined"))
