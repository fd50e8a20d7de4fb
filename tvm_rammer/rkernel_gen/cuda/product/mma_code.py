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
from .fetch import Part
from .warp_matrix import COLUMNS, KINDS, ROWS, WORD, MatrixKind, load_matrices, multiply_add

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

    @property
    def kind(self) -> MatrixKind:
        """Of the operands' numbers."""
        return KINDS[self.shared_dtype]

    def multiply(self, shared: tirx.Var, buffer: Expr, sums: tirx.Var, thread: Expr) -> tirx.Stmt:
        """One step: each warp its tile."""
        tile, kind = self.tile, self.kind
        tiles_i, tiles_j = tile.mi // ROWS, tile.mj // COLUMNS
        word = WORD // kind.itemsize
        lane = tirx.floormod(thread, number(WARP))
        first_i, first_j = self._warp_tile(thread)
        left, right = self.parts(shared)
        a = tirx.decl_buffer((tiles_i * 4 * word,), left.operand.dtype, "a", scope="local")
        b = tirx.decl_buffer((tiles_j * 2 * word,), right.operand.dtype, "b", scope="local")
        load = _WordLoader if kind.itemsize == WORD else _MatrixLoader

        def one(k: Expr) -> tirx.Stmt:
            a_loader = load(left, shared, buffer, a, lane, kind.terms // 2, x_first=True)
            b_loader = load(right, shared, buffer, b, lane, kind.terms // 2, x_first=False)
            return sequence([
                unrolled(tiles_i, lambda x: a_loader.load(x * 4 * word, first_i + x * ROWS, k)),
                unrolled(tiles_j // 2, lambda y: b_loader.load(y * 4 * word, first_j + y * 2 * COLUMNS, k)),
                unrolled(tiles_i, lambda x: unrolled(tiles_j, lambda y: multiply_add(
                    sums[(x * tiles_j + y) * 4], a[x * 4 * word], b[y * 2 * word], kind))),
            ])  # fmt: skip

        steps = serial(tile.k // kind.terms, lambda k: one(k * kind.terms))
        return sequence([tirx.AllocBuffer(a), tirx.AllocBuffer(b), steps])

    def finish(self, shared: tirx.Var, sums: tirx.Var, s: Expr, i: Expr, j: Expr, thread: Expr) -> tirx.Stmt:
        """Store the sums from the registers that they are in."""
        tile = self.tile
        tiles_j = tile.mj // COLUMNS
        lane = tirx.floormod(thread, number(WARP))
        first_i, first_j = self._warp_tile(thread)
        store = self.storer(s, i, j)

        def one(at: Expr) -> tirx.Stmt:
            e, half, fragment = tirx.floormod(at, 2), tirx.floormod(tirx.floordiv(at, 2), 2), tirx.floordiv(at, 4)
            x, y = tirx.floordiv(fragment, tiles_j), tirx.floormod(fragment, tiles_j)
            row = first_i + x * ROWS + half * 8 + tirx.floordiv(lane, number(4))
            column = first_j + y * COLUMNS + tirx.floormod(lane, number(4)) * 2 + e
            total = sums[at]
            return store(row, column, total if self.product.dtype == "float32" else total.astype(self.product.dtype))

        # One loop, so that what else results are computed of is loaded for many of them at once (`tvm_rammer/loads`).
        return unrolled(tile.sums, one)

    def _warp_tile(self, thread: Expr) -> tuple[Expr, Expr]:
        """Where in the rTask's tile a warp's begins."""
        tile = self.tile
        warp, columns = tirx.floordiv(thread, number(WARP)), number(tile.j // tile.mj)
        return tirx.floordiv(warp, columns) * tile.mi, tirx.floormod(warp, columns) * tile.mj


@dataclass(frozen=True)
class _MatrixLoader:
    """Loads four matrices of eight rows of 16 bytes each: one fragment of A, or two of B.

    Parameters
    ----------
    part : Part
    shared : Var
    buffer : Expr
        Where in shared memory the step's tiles begin.
    fragment : Var
    lane : Expr
    half : int
        Elements of 16 bytes: half of an instruction's terms.
    x_first : bool
        Whether the second of the matrices is beside the first along I or J, or along K.
    """

    part: Part
    shared: tirx.Var
    buffer: Expr
    fragment: tirx.Var
    lane: Expr
    half: int
    x_first: bool

    def load(self, at: Expr, x: Expr, k: Expr) -> tirx.Stmt:
        """Load those that begin at (x, k) to the registers from an element on."""
        matrix, row = tirx.floordiv(self.lane, number(8)), tirx.floormod(self.lane, number(8))
        x, k = self._corner(x, k, matrix)
        k_fast = self.part.k_fast
        place = self.part.place(x + (row if k_fast else 0), k + (0 if k_fast else row))
        return load_matrices(self.fragment[at], self.shared[self.buffer + place], transposed=not k_fast)

    def _corner(self, x: Expr, k: Expr, matrix: Expr) -> tuple[Expr, Expr]:
        """Where a matrix begins."""
        low, high = tirx.floormod(matrix, number(2)), tirx.floordiv(matrix, number(2))
        along_x, along_k = (low, high) if self.x_first else (high, low)
        return x + along_x * 8, k + along_k * self.half


class _WordLoader(_MatrixLoader):
    """The same of numbers of a whole word, which `ldmatrix` does not transpose: word by word where K is not fast."""

    def load(self, at: Expr, x: Expr, k: Expr) -> tirx.Stmt:
        """Load those that begin at (x, k) to the registers from an element on."""
        if self.part.k_fast:
            return super().load(at, x, k)

        def word(matrix: Expr) -> tirx.Stmt:
            corner_x, corner_k = self._corner(x, k, matrix)
            place = self.part.place(
                corner_x + tirx.floordiv(self.lane, number(4)), corner_k + tirx.floormod(self.lane, number(4))
            )
            return tirx.BufferStore(self.fragment, self.shared[self.buffer + place], [at + matrix])

        return unrolled(4, word)
