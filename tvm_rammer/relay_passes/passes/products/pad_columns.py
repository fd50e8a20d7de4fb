"""Pad the columns of constant matrices to full vectors: 6,625 become 6,640, and the product is sliced."""

from functools import partial

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call

from ...bindings import dtype_of, is_call, is_const, rewrite_bindings, rewrite_functions, static_shape
from ...module_pass import module_pass


def PadColumns(simd: int) -> tvm.transform.Pass:
    """Make the pass that pads the right sides of matrix products with columns of zeros, for a CPU.

    A kernel's vector length divides the columns, so 6,625 columns would be computed in vectors of 5. A product is
    padded where that takes fewer vectors; a slice of the result drops the padding, and fuses into its consumers. Only
    products with constant matrices are padded, of float32 or of integers that are added up as int32.

    Parameters
    ----------
    simd : int
        Elements of float32 in the longest vector of the processor.

    Returns
    -------
    tvm.transform.Pass
    """

    @module_pass("PadColumns")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_functions(mod, partial(rewrite_bindings, rewrite=_Padder(simd).pad))

    return run


class _Padder:
    """Pads products; each matrix once.

    Parameters
    ----------
    simd : int
    """

    def __init__(self, simd: int) -> None:
        self._simd = simd
        self._padded: dict[relax.Expr, relax.Expr] = {}

    def pad(self, binding: relax.Binding, make: type[relax.Var]) -> list[relax.Binding] | None:
        """The bindings of a product and its slice; None where the binding stays."""
        call = binding.value
        if not isinstance(binding, relax.VarBinding) or not is_call(call, ("relax.matmul",)):
            return None
        data, matrix = call.args
        shape, matrix_shape = static_shape(call.ty), static_shape(matrix.ty)
        dtype = dtype_of(call.ty)
        if shape is None or matrix_shape is None or not is_const(matrix) or dtype not in ("float32", "int32"):
            return None
        if len(matrix_shape) != 2 or not self._is_worth_padding(columns := matrix_shape[1]):
            return None
        wide = make(f"{binding.var.name}_wide", relax.TensorType((*shape[:-1], self._rounded_up(columns)), dtype))
        product = Call(call.op, [data, self._matrix(matrix, columns)], call.attrs, ret_ty=wide.ty)
        cut = relax.op.strided_slice(wide, axes=[len(shape) - 1], begin=[0], end=[columns], assume_inbound=True)
        result = Call(cut.op, cut.args, cut.attrs, ret_ty=call.ty)
        return [relax.VarBinding(wide, product), relax.VarBinding(binding.var, result)]

    def _matrix(self, matrix: relax.Expr, columns: int) -> relax.Expr:
        if matrix not in self._padded:
            padding = ((0, 0), (0, self._rounded_up(columns) - columns))
            self._padded[matrix] = relax.const(np.pad(matrix.value.numpy(), padding))
        return self._padded[matrix]

    def _rounded_up(self, columns: int) -> int:
        """The next multiple of the vector length."""
        return -(-columns // self._simd) * self._simd

    def _is_worth_padding(self, columns: int) -> bool:
        """Whether full vectors are fewer than the widest vectors that divide the columns."""
        widest = max(width for width in range(1, self._simd + 1) if columns % width == 0)
        return self._rounded_up(columns) // self._simd < columns // widest
