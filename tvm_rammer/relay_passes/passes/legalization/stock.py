"""TVM's own legalization of an operator, and how it is computed in float32."""

from collections.abc import Callable

from tvm import relax, te, tirx
from tvm.ir import Call

Legalization = Callable[[relax.BlockBuilder, Call], relax.Expr]
"""What `relax.transform.LegalizeOps` calls with an operator's call, and puts into its place."""

HALVES = ("float16", "bfloat16")


def stock(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of a call of one of its operators."""
    return call.op.get_attr("FLegalize")(bb, call)


def in_float32(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of a call; of half precision the same in float32, rounded once."""
    dtype = str(call.ty.dtype)
    if dtype not in HALVES:
        return stock(bb, call)
    wide = [bb.emit(stock(bb, bb.normalize(relax.op.astype(arg, "float32")))) for arg in call.args]
    wide = bb.normalize(Call(call.op, wide, call.attrs))
    return stock(bb, bb.normalize(relax.op.astype(bb.emit(stock(bb, wide)), dtype)))


def elementwise(bb: relax.BlockBuilder, call: Call, element: Callable[[tirx.Expr], tirx.Expr]) -> relax.Expr:
    """A function of each element, in float32 at least."""
    dtype, name = str(call.ty.dtype), call.op.name.removeprefix("relax.")
    wide = "float32" if dtype in HALVES else dtype

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: element(x(*i).astype(wide)).astype(dtype), name=name, tag="elemwise")

    return bb.call_te(compute, call.args[0], primfunc_name_hint=f"tir_{name}")
