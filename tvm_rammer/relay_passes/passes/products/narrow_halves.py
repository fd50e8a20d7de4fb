"""Products in single precision of what was of half before: on tensor cores, whose sums are in single precision."""

from collections.abc import Mapping
from functools import partial

import tvm
from tvm import relax

from ...bindings import body_blocks, dtype_of, is_call, rewrite_bindings, rewrite_functions, static_shape, typed
from ...module_pass import module_pass
from .widen_halves import HALVES


def NarrowHalves() -> tvm.transform.Pass:
    """Make the pass that multiplies halves as such where they were cast to float32 for a product, for a GPU.

    The product of two halves is exact in float32, so nothing is rounded that was not before.

    Returns
    -------
    tvm.transform.Pass
    """
    return _narrow_halves


@module_pass("NarrowHalves")
def _narrow_halves(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_functions(mod, _narrowed)


def _narrowed(func: relax.Function) -> relax.Function | None:
    bindings = [binding for block in body_blocks(func) for binding in block.bindings]
    halves = {
        binding.var: binding.value.args[0]
        for binding in bindings
        if is_call(binding.value, ("relax.astype",))
        and dtype_of(binding.var.ty) == "float32"
        and dtype_of(binding.value.args[0].ty) in HALVES
    }
    return rewrite_bindings(func, partial(_of_halves, halves)) if halves else None


def _of_halves(
    halves: Mapping[relax.Var, relax.Expr], binding: relax.Binding, _make: type[relax.Var]
) -> list[relax.Binding] | None:
    """The binding of a product of what two casts read; None for any other value."""
    call = binding.value
    if not isinstance(binding, relax.VarBinding) or not is_call(call, ("relax.matmul",)):
        return None
    read = [halves[arg] for arg in call.args if arg in halves]
    if len(read) < 2 or static_shape(call.ty) is None or dtype_of(read[0].ty) != dtype_of(read[1].ty):
        return None
    product = relax.op.matmul(*read, out_dtype="float32")
    return [relax.VarBinding(binding.var, typed(product, binding.var.ty))]
