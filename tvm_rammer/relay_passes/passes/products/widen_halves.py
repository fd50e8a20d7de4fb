"""Products and maxima of windows of half precision in single precision: a CPU has vectors of no other."""

from collections.abc import Sequence
from functools import partial

import tvm
from tvm import relax
from tvm.ir import Call

from ...bindings import dtype_of, is_call, rewrite_bindings, rewrite_functions, static_shape, typed
from ...module_pass import module_pass

HALVES = ("float16", "bfloat16")
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_WIDENED = (
    "relax.matmul",
    *(f"relax.nn.conv{n}d{kind}" for n in (1, 2) for kind in ("", "_transpose")),
    "relax.nn.conv3d",
    *(f"relax.nn.max_pool{n}d" for n in (1, 2, 3)),
)


def WidenHalves() -> tvm.transform.Pass:
    """Make the pass that computes matrix products, convolutions and max pools of half precision in float32, for a CPU.

    Their results are rounded to the type that they had, so they are those of sums in single precision, and a maximum is
    exact. What they read is cast before, of which weights are cast when constants are folded: then the kernels for
    float32 take them.

    Returns
    -------
    tvm.transform.Pass
    """
    return _widen_halves


@module_pass("WidenHalves")
def _widen_halves(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_functions(mod, partial(rewrite_bindings, rewrite=_widened))


def _widened(binding: relax.Binding, make: type[relax.Var]) -> list[relax.Binding] | None:
    """The bindings of casts, of a product or pool in float32, and of its rounding; None for any other value."""
    call = binding.value
    if not isinstance(binding, relax.VarBinding) or not is_call(call, _WIDENED) or static_shape(call.ty) is None:
        return None
    if dtype_of(call.ty) not in HALVES or any(dtype_of(arg.ty) not in HALVES for arg in call.args):
        return None
    made: list[relax.Binding] = []

    def name(value: relax.Expr, like: relax.TensorType) -> relax.Var:
        var = make(f"{binding.var.name}_wide{len(made)}", relax.TensorType(like.shape, "float32"))
        made.append(relax.VarBinding(var, typed(value, var.ty)))
        return var

    wide = [name(relax.op.astype(arg, "float32"), arg.ty) for arg in call.args]
    result = name(in_single(call, wide), call.ty)
    return [*made, relax.VarBinding(binding.var, typed(relax.op.astype(result, dtype_of(call.ty)), binding.var.ty))]


def in_single(call: Call, args: Sequence[relax.Expr]) -> Call:
    """The same call of other arguments; of a product or convolution the sums and the result are float32, too.

    Parameters
    ----------
    call : Call
        It may say of its result that it is of half precision (`out_dtype`): TVM adds up in that type.
    args : sequence of Expr
        In the place of its arguments, of the same shapes.

    Returns
    -------
    Call
        It has no type yet.
    """
    _, _, name = call.op.name.rpartition(".")
    if name == "matmul":
        return relax.op.matmul(*args, out_dtype="float32")
    if name not in _CONVOLUTIONS:
        return Call(call.op, list(args), call.attrs)
    kept = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "out_layout")
    make = getattr(relax.op.nn, name)
    return make(*args, **{each: getattr(call.attrs, each) for each in kept}, out_dtype="float32")
