"""Vectors in registers, and products of them with small constant matrices."""

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr

from .matrices import Matrix


class Vectors:
    """Vectors in registers, and the statements that define them."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.statements: list[tirx.Stmt] = []

    def define(self, value: Expr) -> Expr:
        """Give a value a name."""
        var = tirx.Var("lanes", f"float32x{self.width}")
        self.statements.append(tirx.Bind(var, value))
        return var

    def two_sided(self, matrix: Matrix, values: Sequence[Sequence[Expr]]) -> list[list[Expr]]:
        """`matrix @ values @ matrix.T`, each element a vector."""
        columns = [self._times(matrix, column) for column in zip(*values, strict=True)]
        return [self._times(matrix, row) for row in zip(*columns, strict=True)]

    def _times(self, matrix: Matrix, values: Sequence[Expr]) -> list[Expr]:
        return [self.define(self._sum(row, values)) for row in matrix]

    def _sum(self, row: Sequence[float], values: Sequence[Expr]) -> Expr:
        """A sum that begins with a term that is added, if there is one."""
        terms = sorted(((factor, v) for factor, v in zip(row, values, strict=True) if factor), key=lambda t: t[0] < 0)
        (factor, value), *others = terms
        total = value if factor == 1 else value * self._lanes_of(factor)
        for factor, value in others:
            term = value if abs(factor) == 1 else value * self._lanes_of(abs(factor))
            total = total + term if factor > 0 else total - term
        return total

    def _lanes_of(self, factor: float) -> Expr:
        return tirx.Broadcast(tirx.FloatImm("float32", factor), self.width)
