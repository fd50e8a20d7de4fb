"""The code of a product on tensor cores: the steps and copies are those of `code.py`, the multiplications a warp's.

load step 0 to registers
for each step of K:
    registers -> shared memory; barrier
    load the next step to registers
    each warp: fragments from shared memory, `mma.sync`
store, from the registers that the sums are in
"""

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ..threads import number, sequence, serial, unrolled
from .code import Writer
from .warp_matrix import COLUMNS, ROWS, TERMS, load_matrices, multiply_add

WARP = 32
"""Threads of a warp."""


@dataclass(frozen=True)
class MatrixWriter(Writer):
    """Generates the loops of one tiling on tensor cores."""

    @property
    def shared_dtype(self) -> str:
        """That of the operands."""
        return self.product.operands[0].dtype

    @property
    def sum_dtype(self) -> str:
        """Sums are single precision, whatever the function's are."""
        return "float32"

    def multiply(self, shared: tirx.Var, buffer: Expr, sums: tirx.Var, thread: Expr) -> tirx.Stmt:
        """One step: each warp its tile."""
        tile = self.tile
        tiles_i, tiles_j = tile.mi // ROWS, tile.mj // COLUMNS
        lane = tirx.floormod(thread, number(WARP))
        first_i, first_j = self._warp_tile(thread)
        parts = self.parts(shared)
        a = tirx.decl_buffer((tiles_i * 8,), parts[0].operand.dtype, "a", scope="local")
        b = tirx.decl_buffer((tiles_j * 4,), parts[1].operand.dtype, "b", scope="local")
        matrix, row = tirx.floordiv(lane, number(8)), tirx.floormod(lane, number(8))
        low, high = tirx.floormod(matrix, number(2)) * 8, tirx.floordiv(matrix, number(2)) * 8

        def load(part: int, fragment: Expr, x: Expr, k: Expr, along_x: Expr, along_k: Expr) -> tirx.Stmt:
            k_fast = parts[part].k_fast
            at = parts[part].place(x + along_x + (row if k_fast else 0), k + along_k + (0 if k_fast else row))
            return load_matrices(fragment, shared[buffer + at], transposed=not k_fast)

        def one(k: Expr) -> tirx.Stmt:
            return sequence([
                unrolled(tiles_i, lambda x: load(0, a[x * 8], first_i + x * ROWS, k, low, high)),
                unrolled(tiles_j // 2, lambda y: load(1, b[y * 8], first_j + y * 2 * COLUMNS, k, high, low)),
                unrolled(tiles_i, lambda x: unrolled(tiles_j, lambda y: multiply_add(
                    sums[(x * tiles_j + y) * 4], a[x * 8], b[y * 4], self.shared_dtype))),
            ])  # fmt: skip

        steps = serial(tile.k // TERMS, lambda k: one(k * TERMS))
        return sequence([tirx.AllocBuffer(a), tirx.AllocBuffer(b), steps])

    def finish(self, shared: tirx.Var, sums: tirx.Var, s: Expr, i: Expr, j: Expr, thread: Expr) -> tirx.Stmt:
        """Store the sums from the registers that they are in."""
        tile = self.tile
        tiles_i, tiles_j = tile.mi // ROWS, tile.mj // COLUMNS
        lane = tirx.floormod(thread, number(WARP))
        first_i, first_j = self._warp_tile(thread)
        store = self.storer(s, i, j)

        def one(x: Expr, y: Expr, half: Expr, e: Expr) -> tirx.Stmt:
            row = first_i + x * ROWS + half * 8 + tirx.floordiv(lane, number(4))
            column = first_j + y * COLUMNS + tirx.floormod(lane, number(4)) * 2 + e
            total = sums[(x * tiles_j + y) * 4 + half * 2 + e]
            value = total if self.product.dtype == "float32" else total.astype(self.product.dtype)
            return store(row, column, value)

        return unrolled(
            tiles_i,
            lambda x: unrolled(tiles_j, lambda y: unrolled(2, lambda half: unrolled(2, lambda e: one(x, y, half, e)))),
        )

    def _warp_tile(self, thread: Expr) -> tuple[Expr, Expr]:
        """Where in the rTask's tile a warp's begins."""
        tile = self.tile
        warp, columns = tirx.floordiv(thread, number(WARP)), number(tile.j // tile.mj)
        return tirx.floordiv(warp, columns) * tile.mi, tirx.floormod(warp, columns) * tile.mj
