"""Give constant matrices whole vectors of columns: a vocabulary of 6,625 words is 6,640 columns wide, then cut."""

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call

from ..bindings import body_blocks, dtype_of, is_call, is_const, rebuild, rewrite_functions, static_shape


def PadColumns(lanes: int) -> tvm.transform.Pass:
    """Make the pass that pads the right sides of matrix products with columns of zeros, for a CPU.

    A kernel's vectors divide the columns, so 6,625 of them would be made in vectors of 5. A product is padded where
    that makes fewer vectors; a slice cuts the result, and fuses into whatever reads it. Only products of float32 with
    constant matrices are.

    Parameters
    ----------
    lanes : int
        Numbers in the processor's longest vector.

    Returns
    -------
    tvm.transform.Pass
    """

    @tvm.transform.module_pass(opt_level=0, name="PadColumns")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_functions(mod, lambda func: _Padder(func, lanes).run())

    return run


class _Padder:
    """Pads within one function."""

    def __init__(self, func: relax.Function, lanes: int) -> None:
        self._func, self._lanes = func, lanes
        self._padded: dict[relax.Expr, relax.Expr] = {}

    def run(self) -> relax.Function | None:
        """Return the new function, or None where no product pays."""
        blocks = []
        for block in body_blocks(self._func):
            dataflow = isinstance(block, relax.DataflowBlock)
            blocks.append((dataflow, [new for b in block.bindings for new in self._pad(b, dataflow)]))
        return rebuild(self._func, blocks) if self._padded else None

    def _pad(self, binding: relax.Binding, dataflow: bool) -> list[relax.Binding]:
        """The bindings of a product and its slice, or the binding as it is."""
        call = binding.value
        if not isinstance(binding, relax.VarBinding) or not is_call(call, ("relax.matmul",)):
            return [binding]
        data, matrix = call.args
        shape, whole = static_shape(call.ty), static_shape(matrix.ty)
        if shape is None or not is_const(matrix) or len(whole or ()) != 2 or dtype_of(call.ty) != "float32":
            return [binding]
        columns = whole[1]
        if not self._pays(columns):
            return [binding]
        make = relax.DataflowVar if dataflow else relax.Var
        wide = make(f"{binding.var.name}_wide", relax.TensorType((*shape[:-1], self._whole(columns)), "float32"))
        product = Call(call.op, [data, self._matrix(matrix, columns)], call.attrs, ret_ty=wide.ty)
        cut = relax.op.strided_slice(wide, axes=[len(shape) - 1], begin=[0], end=[columns], assume_inbound=True)
        result = Call(cut.op, cut.args, cut.attrs, ret_ty=call.ty)
        return [relax.VarBinding(wide, product), relax.VarBinding(binding.var, result)]

    def _matrix(self, matrix: relax.Expr, columns: int) -> relax.Expr:
        if matrix not in self._padded:
            room = ((0, 0), (0, self._whole(columns) - columns))
            self._padded[matrix] = relax.const(np.pad(matrix.value.numpy(), room))
        return self._padded[matrix]

    def _whole(self, columns: int) -> int:
        """The columns of whole vectors."""
        return -(-columns // self._lanes) * self._lanes

    def _pays(self, columns: int) -> bool:
        """Whether whole vectors are fewer than the widest vectors that divide the columns."""
        widest = max(lanes for lanes in range(1, self._lanes + 1) if columns % lanes == 0)
        return self._whole(columns) // self._lanes < columns // widest
