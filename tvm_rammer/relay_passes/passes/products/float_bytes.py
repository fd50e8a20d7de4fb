"""Products of bytes in single precision, for processors whose kernels are for floating point."""

from functools import partial

import numpy as np
import tvm
from tvm import relax

from ...bindings import dtype_of, is_call, is_const, rewrite_bindings, rewrite_functions, static_shape, typed
from ...module_pass import module_pass

_EXACT, _MOST = 2**24, 255
"""Up to the first all integers are numbers of float32; the second is the largest unsigned byte."""


def FloatBytes() -> tvm.transform.Pass:
    """Make the pass that computes products of unsigned bytes with constant signed ones in float32, where that is exact.

    Returns
    -------
    tvm.transform.Pass
    """
    return _float_bytes


@module_pass("FloatBytes")
def _float_bytes(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_functions(mod, partial(rewrite_bindings, rewrite=_in_float32))


def _in_float32(binding: relax.Binding, make: type[relax.Var]) -> list[relax.Binding] | None:
    """The bindings of a cast, of a product in float32, and of its integers; None for any other value."""
    call = binding.value
    if not isinstance(binding, relax.VarBinding) or not is_call(call, ("relax.matmul",)):
        return None
    types = [dtype_of(part.ty) for part in (*call.args, call)]
    if types != ["uint8", "int8", "int32"] or not is_const(call.args[1]) or static_shape(call.ty) is None:
        return None
    matrix = call.args[1].value.numpy().astype(np.float32)
    if _MOST * np.abs(matrix).sum(-2).max(initial=0) > _EXACT:
        return None
    data = make(f"{binding.var.name}_data", relax.TensorType(call.args[0].ty.shape, "float32"))
    product = make(f"{binding.var.name}_product", relax.TensorType(call.ty.shape, "float32"))
    return [
        relax.VarBinding(data, typed(relax.op.astype(call.args[0], "float32"), data.ty)),
        relax.VarBinding(product, typed(relax.op.matmul(data, relax.const(matrix)), product.ty)),
        relax.VarBinding(binding.var, typed(relax.op.astype(product, "int32"), binding.var.ty)),
    ]
