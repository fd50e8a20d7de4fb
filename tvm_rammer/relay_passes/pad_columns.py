"""Give constant matrices whole vectors of columns: a vocabulary of 6,625 words is 6,640 columns wide, then cut."""

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call

from .bindings import body_blocks, dtype_of, is_call, is_const, rebuild, static_shape

LANES = 16
"""Elements of a vector: float32 in 64 bytes. Two halves of it are vectors of 32 bytes."""


def PadColumns() -> tvm.transform.Pass:
    """Make the pass that pads the right sides of matrix products with columns of zeros, for a CPU.

    A kernel's vectors divide the columns, so 6,625 of them would be made in vectors of 5. A product is padded where
    that makes fewer vectors; a slice cuts the result, and fuses into whatever reads it. Only products of float32 with
    constant matrices are.

    Returns
    -------
    tvm.transform.Pass
    """

    @tvm.transform.module_pass(opt_level=0, name="PadColumns")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        changed = {
            var: new
            for var, func in mod.functions_items()
            if isinstance(func, relax.Function) and (new := _padded(func)) is not None
        }
        if changed:
            mod = mod.clone()
            for var, func in changed.items():
                mod.update_func(var, func)
        return mod

    return run


def _padded(func: relax.Function) -> relax.Function | None:
    blocks: list[tuple[bool, list[relax.Binding]]] = []
    constants: dict[relax.Expr, relax.Expr] = {}
    for block in body_blocks(func):
        dataflow = isinstance(block, relax.DataflowBlock)
        blocks.append((dataflow, [new for b in block.bindings for new in _pad(b, dataflow, constants)]))
    return rebuild(func, blocks) if constants else None


def _pad(binding: relax.Binding, dataflow: bool, constants: dict[relax.Expr, relax.Expr]) -> list[relax.Binding]:
    """The bindings of a product and its slice, or the binding as it is."""
    call = binding.value
    if not isinstance(binding, relax.VarBinding) or not is_call(call, ("relax.matmul",)):
        return [binding]
    data, matrix = call.args
    shape = static_shape(call.ty)
    if shape is None or not is_const(matrix) or dtype_of(matrix.ty) != "float32" or dtype_of(call.ty) != "float32":
        return [binding]
    whole = static_shape(matrix.ty)
    if whole is None or len(whole) != 2 or not _pays(whole[1]):
        return [binding]
    columns = -(-whole[1] // LANES) * LANES
    if matrix not in constants:
        constants[matrix] = relax.const(np.pad(matrix.value.numpy(), ((0, 0), (0, columns - whole[1]))))
    make = relax.DataflowVar if dataflow else relax.Var
    wide = make(f"{binding.var.name}_wide", relax.TensorType((*shape[:-1], columns), "float32"))
    product = Call(call.op, [data, constants[matrix]], call.attrs, ret_ty=wide.ty)
    cut = relax.op.strided_slice(wide, axes=[len(shape) - 1], begin=[0], end=[whole[1]], assume_inbound=True)
    return [
        relax.VarBinding(wide, product),
        relax.VarBinding(binding.var, Call(cut.op, cut.args, cut.attrs, ret_ty=call.ty)),
    ]


def _pays(columns: int) -> bool:
    """Whether whole vectors are fewer than the widest vectors that divide the columns."""
    widest = max(lanes for lanes in range(1, LANES + 1) if columns % lanes == 0)
    return -(-columns // LANES) < columns // widest
