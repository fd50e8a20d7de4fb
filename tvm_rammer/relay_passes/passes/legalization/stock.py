"""TVM's own legalization of an operator, and how it is computed in float32."""

from collections.abc import Callable
from typing import Any

from tvm import relax, te, tirx, topi
from tvm.ir import Call

from ...bindings import dtype_of
from ..products.widen_halves import HALVES, in_single

Legalization = Callable[[relax.BlockBuilder, Call], relax.Expr]
"""What `relax.transform.LegalizeOps` calls with an operator's call, and puts into its place."""

_POOLS = [f"relax.nn.{kind}{n}d" for kind in ("avg_pool", "adaptive_avg_pool") for n in (1, 2, 3)]
SUMS = (
    *("relax.sum", "relax.prod", "relax.mean", "relax.std", "relax.variance", "relax.einsum", "relax.collapse_sum_to"),
    *("relax.scatter_elements", "relax.scatter_nd", "relax.index_put", *_POOLS),
    *("relax.nn.attention", "relax.nn.attention_bias", "relax.nn.cross_entropy_with_logits", "relax.nn.nll_loss"),
    *("relax.nn.batch_norm", "relax.nn.group_norm", "relax.nn.instance_norm"),
    *("relax.grad.avg_pool2d_backward", "relax.grad.take_backward"),
)
"""Operators of which TVM's functions add or multiply many numbers in their own type, or take no bfloat16."""


def stock(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of a call of one of its operators."""
    return call.op.get_attr("FLegalize")(bb, call)


def in_float32(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of a call; of half precision the same in float32, rounded once."""
    return widened(bb, call) if has_halves(call) else stock(bb, call)


def has_halves(call: Call) -> bool:
    """Whether a call reads tensors of half precision, by themselves or in a tuple."""
    fields = (field for arg in call.args for field in getattr(arg.ty, "fields", [arg.ty]))
    return any(isinstance(ty, relax.TensorType) and dtype_of(ty) in HALVES for ty in fields)


def widened(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """The same call of float32 where it reads half precision, and its results rounded; all is yet to be legalized."""
    wide = bb.emit(in_single(call, [_of_float32(bb, arg) for arg in call.args]))
    if not isinstance(call.ty, relax.TupleType):
        return _of_type(wide, call.ty)
    items = [bb.emit(relax.TupleGetItem(wide, i)) for i in range(len(call.ty.fields))]
    return relax.Tuple([bb.emit(_of_type(item, ty)) for item, ty in zip(items, call.ty.fields, strict=True)])


def _of_float32(bb: relax.BlockBuilder, value: relax.Expr) -> relax.Expr:
    if isinstance(value.ty, relax.TupleType):
        items = (bb.normalize(relax.TupleGetItem(value, i)) for i in range(len(value.ty.fields)))
        return relax.Tuple([_of_float32(bb, bb.emit(item)) for item in items])
    halves = isinstance(value.ty, relax.TensorType) and dtype_of(value.ty) in HALVES
    return bb.emit(relax.op.astype(value, "float32")) if halves else value


def _of_type(value: relax.Expr, ty: relax.TensorType) -> relax.Expr:
    return value if dtype_of(value.ty) == dtype_of(ty) else relax.op.astype(value, dtype_of(ty))


def in_one_function(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """What TVM makes of a call; of half precision one function, which casts what it reads and rounds what it writes.

    On a GPU nothing is fused behind a sum: a cast of its own would be a kernel of its own.
    """
    return stock(_InFloat32(bb, call), call) if has_halves(call) else stock(bb, call)


class _InFloat32:
    """A builder of functions that are computed in float32 of tensors of half precision."""

    def __init__(self, bb: relax.BlockBuilder, call: Call) -> None:
        self._bb = bb
        self._dtypes = [dtype_of(ty) for ty in getattr(call.ty, "fields", [call.ty])]

    def call_te(self, function: Callable[..., Any], *args: Any, **named: Any) -> relax.Expr:
        """As the method of a `relax.BlockBuilder`."""
        hint = named.pop("primfunc_name_hint", None) or function.__name__

        def wide(*args: Any, **named: Any) -> Any:
            made = function(*map(_cast, args), **{name: _cast(value) for name, value in named.items()})
            if isinstance(made, te.Tensor):
                return topi.cast(made, self._dtypes[0])
            return [topi.cast(tensor, dtype) for tensor, dtype in zip(made, self._dtypes, strict=True)]

        return self._bb.call_te(wide, *args, primfunc_name_hint=hint, **named)


def _cast(value: Any) -> Any:
    return topi.cast(value, "float32") if isinstance(value, te.Tensor) and str(value.dtype) in HALVES else value


def product(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    """A matrix product or convolution; of half precision it is added up in float32, and rounded."""
    if dtype_of(call.ty) not in HALVES:
        return stock(bb, call)
    return relax.op.astype(bb.emit(in_single(call, call.args)), dtype_of(call.ty))


def elementwise(bb: relax.BlockBuilder, call: Call, element: Callable[[tirx.Expr], tirx.Expr]) -> relax.Expr:
    """A function of each element, in float32 at least."""
    dtype, name = str(call.ty.dtype), call.op.name.removeprefix("relax.")
    wide = "float32" if dtype in HALVES else dtype

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: element(x(*i).astype(wide)).astype(dtype), name=name, tag="elemwise")

    return bb.call_te(compute, call.args[0], primfunc_name_hint=f"tir_{name}")
