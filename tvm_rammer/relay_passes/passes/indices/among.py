"""Indices that an operand holds among other things: taken out to be checked, and put back."""

import numpy as np
from tvm import relax

from ...bindings import dtype_of
from .uses import Use


class Among:
    """An operand that holds indices.

    Parameters
    ----------
    use : Use
    operand : relax.Expr
    dataflow : bool
        Whether the operator is in a dataflow block.
    """

    def __init__(self, use: Use, operand: relax.Expr, dataflow: bool) -> None:
        self._use, self._operand, self._dataflow = use, operand, dataflow

    def indices(self, new: list[relax.Binding]) -> relax.Expr:
        """Indices only; what computes them is added to `new`."""
        use, operand = self._use, self._operand
        if use.columns is not None:
            first = self._emit(relax.op.strided_slice(operand, [1], [0], [1]), new)
            return self._emit(relax.op.astype(first, "int64"), new)
        if use.ignored is not None:
            return self._emit(relax.op.where(self._is_ignored(new), self._number(0), operand), new)
        return operand

    def put_back(self, indices: relax.Expr, new: list[relax.Binding]) -> relax.Expr:
        """The operand with other indices in the place of its own."""
        use, operand = self._use, self._operand
        if use.columns is not None:
            first = self._emit(relax.op.astype(indices, dtype_of(operand.ty)), new)
            others = self._emit(relax.op.strided_slice(operand, [1], [1], [use.columns]), new)
            return self._emit(relax.op.concat([first, others], 1), new)
        if use.ignored is not None:
            return self._emit(relax.op.where(self._is_ignored(new), self._number(use.ignored), indices), new)
        return indices

    def _is_ignored(self, new: list[relax.Binding]) -> relax.Expr:
        return self._emit(relax.op.equal(self._operand, self._number(self._use.ignored or 0)), new)

    def _number(self, value: int) -> relax.Expr:
        dtype = dtype_of(self._operand.ty)
        return relax.const(np.array(value, dtype), dtype)

    def _emit(self, value: relax.Expr, new: list[relax.Binding]) -> relax.Var:
        """A variable of the value."""
        made = relax.BlockBuilder().normalize(value)
        var = (relax.DataflowVar if self._dataflow else relax.Var)("among", made.ty)
        new.append(relax.VarBinding(var, made))
        return var
