"""The code of a transposition: tiles of two axes are turned in registers, the innermost ones of input and output."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr

from ..in_registers import transpose
from ..loops import ending, loop, number, sequence


@dataclass(frozen=True, slots=True)
class Transposition:
    """`out[axes] = data[axes in another order]`, where the innermost axes differ.

    Parameters
    ----------
    data, out : tirx.Buffer
        Parameters of the function.
    extents : tuple of int
        Of the output.
    order : tuple of int
        For each dimension of the data, the output's axis that it is.
    """

    data: tirx.Buffer
    out: tirx.Buffer
    extents: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def turned(self) -> int:
        """The output's axis along which the data are contiguous."""
        return self.order[-1]

    def tile(self, simd: int) -> tuple[int, int]:
        """Elements of a tile along the innermost axes of data and output: powers of two, the first not the less."""
        width = min(simd, 1 << self.extents[self.turned].bit_length() - 1)
        return width, min(width, 1 << self.extents[-1].bit_length() - 1)

    def tiles(self, simd: int) -> tuple[int, ...]:
        """Iterations along each axis of the output."""
        width, rows = self.tile(simd)
        sizes = {self.turned: width, len(self.extents) - 1: rows}
        return tuple(-(-extent // sizes.get(axis, 1)) for axis, extent in enumerate(self.extents))

    def split_axis(self, simd: int, parts: int) -> int | None:
        """The axis that is split into rTasks: the first that is long enough; None where none is."""
        *outer, _ = self.tiles(simd)
        return next((axis for axis, tiles in enumerate(outer) if tiles >= parts), None)


def transposition_code(func: tirx.PrimFunc, problem: Transposition, simd: int, parts: int) -> tirx.PrimFunc:
    """Generate the function of a tiling; its outermost loop is parallel."""
    tiles, split = list(problem.tiles(simd)), problem.split_axis(simd, parts)
    assert split is not None
    whole, share = tiles[split], -(-tiles[split] // parts)
    tiles[split] = share

    def rtask(part: Expr) -> tirx.Stmt:
        first = tirx.min(part * share, number(whole - share)) if whole % parts else part * share
        return _nest(tiles, lambda at: _tile(problem, simd, [i + first if a == split else i for a, i in enumerate(at)]))

    body = loop(parts, rtask, "PARALLEL")
    return tirx.PrimFunc(func.params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


def _nest(extents: Sequence[int], body: Callable[[list[Expr]], tirx.Stmt], outer: Sequence[Expr] = ()) -> tirx.Stmt:
    if not extents:
        return body(list(outer))
    return loop(extents[0], lambda i: _nest(extents[1:], body, [*outer, i]))


def _tile(problem: Transposition, simd: int, at: Sequence[Expr]) -> tirx.Stmt:
    """A tile: its rows are loaded along the data's innermost axis, its columns stored along the output's."""
    width, rows = problem.tile(simd)
    turned, last = problem.turned, len(problem.extents) - 1
    start = list(at)
    start[turned] = ending(at[turned], width, problem.extents[turned])
    start[last] = ending(at[last], rows, problem.extents[last])

    def load(row: int) -> Expr:
        index = list(start)
        index[last] = start[last] + row
        index[turned] = tirx.Ramp(start[turned], number(1), width)
        return problem.data[tuple(index[axis] for axis in problem.order)]

    def store(column: int, vector: Expr) -> tirx.Stmt:
        index = list(start)
        index[turned] = start[turned] + column
        index[last] = tirx.Ramp(start[last], number(1), rows) if rows > 1 else start[last]
        return tirx.BufferStore(problem.out, vector, index)

    return sequence(transpose([load(row) for row in range(rows)], width, store, str(problem.data.dtype)))


def cycles(problem: Transposition, simd: int, parts: int) -> float:
    """Cycles of an rTask, without those of memory: two shuffles or one store a cycle."""
    width, rows = problem.tile(simd)
    count = math.prod(problem.tiles(simd)) / parts
    return count * (rows + rows * max(1, rows.bit_length() - 1) + width)
