"""The code of a product on tensor cores: the steps and copies are those of `code.py`, the multiplications a warp's.

load step 0 to registers
for each step of K:
    registers -> shared memory; barrier
    load the next step to registers
    each warp: fragments from shared memory, `mma.sync`; each team has its own terms of the step
store, from the registers that the sums are in; those of several teams are added up in shared memory before
"""

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ..cost import WARP
from ..threads import barrier, number, sequence, serial, unrolled
from .code import Writer
from .fetch import Part
from .warp_matrix import COLUMNS, KINDS, ROW_BYTES, ROWS, WORD, MatrixKind, load_matrices, multiply_add, run_of


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
        """One team's part of a step: of as many instructions' terms as there are teams, each has those of one."""
        tile, kind = self.tile, self.kind
        tiles_i, tiles_j = tile.mi // ROWS, tile.mj // COLUMNS
        word = WORD // kind.itemsize
        lane = tirx.floormod(thread, number(WARP))
        team, first_i, first_j = self._warp_tile(thread)
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
                    run_of(sums, (x * tiles_j + y) * 4, 4 * WORD),
                    run_of(a, x * 4 * word, 4 * WORD), run_of(b, y * 2 * word, 2 * WORD), kind))),
            ])  # fmt: skip

        depth = tile.k // kind.terms // tile.slices
        steps = serial(depth, lambda k: one((k * tile.slices + team) * kind.terms))
        return sequence([tirx.AllocBuffer(a), tirx.AllocBuffer(b), steps])

    def finish(self, shared: tirx.Var, sums: tirx.Var, s: Expr, i: Expr, j: Expr, thread: Expr) -> tirx.Stmt:
        """Store the sums from the registers that they are in; with several teams, first add them up."""
        tile = self.tile
        tiles_j = tile.mj // COLUMNS
        lane = tirx.floormod(thread, number(WARP))
        team, first_i, first_j = self._warp_tile(thread)
        place = self.storer(s, i, j)

        def place_of(at: Expr) -> tuple[Expr, Expr]:
            e, half, fragment = tirx.floormod(at, 2), tirx.floormod(tirx.floordiv(at, 2), 2), tirx.floordiv(at, 4)
            x, y = tirx.floordiv(fragment, tiles_j), tirx.floormod(fragment, tiles_j)
            row = first_i + x * ROWS + half * 8 + tirx.floordiv(lane, number(4))
            return row, first_j + y * COLUMNS + tirx.floormod(lane, number(4)) * 2 + e

        def store(x: Expr, y: Expr, total: Expr) -> tirx.Stmt:
            return place(x, y, total if self.product.dtype == "float32" else total.astype(self.product.dtype))

        # One loop, so that what else results are computed of is loaded for many of them at once (`tvm_rammer/loads`).
        if not tile.staged:
            return unrolled(tile.sums, lambda at: store(*place_of(at), sums[at]))
        partial = tirx.decl_buffer((tile.slices * tile.team_sums,), self.sum_dtype, "partial", scope="shared")
        keep = unrolled(
            tile.sums, lambda at: tirx.BufferStore(partial, sums[at], [self.place_of_sum(team, *place_of(at))])
        )
        added = self.add_up(partial, sums, thread, store)
        # Its place in shared memory may be that of the tiles, which other warps read until the first barrier.
        return sequence([tirx.AllocBuffer(partial), barrier(), keep, barrier(), added])

    def _warp_tile(self, thread: Expr) -> tuple[Expr, Expr, Expr]:
        """A thread's team, and where in the rTask's tile its warp's begins."""
        tile = self.tile
        team, rest = tirx.floordiv(thread, number(tile.team)), tirx.floormod(thread, number(tile.team))
        warp, columns = tirx.floordiv(rest, number(WARP)), number(tile.j // tile.mj)
        return team, tirx.floordiv(warp, columns) * tile.mi, tirx.floormod(warp, columns) * tile.mj


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
        matrix, line = tirx.floordiv(self.lane, number(8)), tirx.floormod(self.lane, number(8))
        x, k = self._corner(x, k, matrix)
        k_fast = self.part.k_fast
        place = self.part.place(x + (line if k_fast else 0), k + (0 if k_fast else line))
        row = run_of(self.shared, self.buffer + place, ROW_BYTES)
        return load_matrices(run_of(self.fragment, at, 4 * WORD), row, transposed=not k_fast)

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
