"""The code of a register tile of sums.

Arrays of sums have the scope "global": those of another one TVM takes from the heap.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad

from ....loads.bodies import substituted
from ..elements.loops import Places, in_order, loop, nested
from .vectorise import is_at

LEAST_SPREAD = 1 << 18
"""Products from which on a loop is spread over the workers: for each row, where any number of them may come."""
MOST_STEPS = 1024
"""Of a sum that are done for all rows, before more of it: what they read fits into a cache of one core."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A block whose results are computed some rows by a vector at a time.

    Parameters
    ----------
    block : s_tir.SBlock
    row : int
        The axis of the rows; that of the vectors is the last one that is not summed.
    rows, elements : int
        Extents of a tile. The last vector of a row may begin within the one before.
    lanes : int
        Elements of a register; a tile has a whole number of them.
    """

    block: s_tir.SBlock
    row: int
    rows: int
    elements: int
    lanes: int

    def code(self) -> tirx.Stmt:
        """Loops over all tiles; rows that fill none are done one by one."""
        along = self._along
        before, row, after, last = along[: self.row], along[self.row], along[self.row + 1 : -1], along[-1]
        across = self.block.iter_vars[len(along) :]
        if isinstance(row.dom.extent, tirx.IntImm):
            # Rows of a known number, as filters: what they multiply with stays in the cache.
            def of_rows(at: Places, rows: int) -> tirx.Stmt:
                return nested(after, at, lambda at: self._each_vector(last, at, partial(self._sum, rows, across)))

            spread = self._is_long(along[self.row :], across)
            return nested(before, {}, lambda at: self._each_rows(row, at, of_rows, spread=spread))

        def of_part(at: Places, part: Expr | None) -> tirx.Stmt:
            def of_vector(at: Places) -> tirx.Stmt:
                return self._each_rows(row, at, lambda at, rows: self._sum(rows, across, at, part))

            return self._each_vector(last, at, of_vector, spread=self._is_long([last], across))

        # Of any number, as those of a matrix: what all of them read of a part of the sum stays in the cache.
        parts = -(-int(across[0].dom.extent) // MOST_STEPS) if len(across) == 1 else 1
        return nested([*before, *after], {}, lambda at: loop(
            parts, lambda part: of_part(at, part if parts > 1 else None)
        ))  # fmt: skip

    def _is_long(self, along: Sequence[tirx.IterVar], across: Sequence[tirx.IterVar]) -> bool:
        """Whether workers may take part: what they do, of each row if any number may come, is more than waking them."""
        extents = [axis.dom.extent for axis in (*along, *across)]
        return all(isinstance(n, tirx.IntImm) for n in extents) and math.prod(map(int, extents)) >= LEAST_SPREAD

    def _each_vector(
        self, axis: tirx.IterVar, at: Places, body: Callable[[Places], tirx.Stmt], *, spread: bool = False
    ) -> tirx.Stmt:
        extent = int(axis.dom.extent)
        count = -(-extent // self.elements)

        def begin(i: Expr) -> Expr:
            last = tirx.IntImm("int64", extent - self.elements)
            return i * self.elements if extent % self.elements == 0 else tirx.min(i * self.elements, last)

        return loop(count, lambda i: body(at | {axis.var: begin(i)}), spread=spread and count > 1)

    def _each_rows(
        self, axis: tirx.IterVar, at: Places, body: Callable[[Places, int], tirx.Stmt], *, spread: bool = False
    ) -> tirx.Stmt:
        """Full tiles, then what is left of the rows in tiles of 2^n, each once or not at all."""
        left, done, made = axis.dom.extent, tirx.IntImm("int64", 0), []
        for size in (self.rows, *(1 << n for n in reversed(range((self.rows - 1).bit_length())))):
            count = tirx.floordiv(left, size)

            def of_tile(i: Expr, first: Expr = done, size: int = size) -> tirx.Stmt:
                return body(at | {axis.var: first + i * size}, size)

            if not isinstance(count, tirx.IntImm):
                made.append(loop(count, of_tile))
            elif int(count) > 0:
                made.append(loop(count, of_tile, spread=spread and int(count) > 1))
            done, left = done + count * size, left - count * size
        return in_order(made)

    def _sum(self, rows: int, across: Sequence[tirx.IterVar], at: Places, part: Expr | None = None) -> tirx.Stmt:
        """A tile of results: from what they begin with, or what was summed up of them before."""
        block, store = self.block, self.block.body
        kind, registers = str(store.value.ty.dtype), self.elements // self.lanes
        # LLVM keeps arrays in registers that it reads and writes as a whole, and those of one register.
        sums = [[tirx.decl_buffer((self.lanes,), kind, f"sums{n}_{r}") for r in range(registers)] for n in range(rows)]

        def step(at: Places) -> tirx.Stmt:
            def added(sums: tirx.Var, e: Expr, at: Places) -> tirx.Stmt:
                value = tvm_ffi.structural_map(
                    store.value, [(TensorLoad, lambda load: sums[e] if is_at(load, store) else load)], order="post"
                )
                return tirx.BufferStore(sums, substituted(value, at), [e])

            return self._each(sums, at, added)

        def begun(sums: tirx.Var, e: Expr, at: Places) -> tirx.Stmt:
            return tirx.BufferStore(sums, substituted(block.init.value, at), [e])

        def loaded(sums: tirx.Var, e: Expr, at: Places) -> tirx.Stmt:
            return tirx.BufferStore(sums, tirx.BufferLoad(store.buffer, self._place(at)), [e])

        begin = self._each(sums, at, begun)
        if part is not None:
            begin = tirx.IfThenElse(part == 0, begin, self._each(sums, at, loaded))
            (summed,) = across
            count = tirx.min(summed.dom.extent - part * MOST_STEPS, tirx.IntImm("int64", MOST_STEPS))
            steps = loop(count, lambda k: step(at | {summed.var: part * MOST_STEPS + k}))
        else:
            steps = nested(across, at, step)
        arrays, end = [each for row in sums for each in row], self._each(sums, at, self._stored)
        if again := -int(self._along[-1].dom.extent) % self.elements:
            whole = tirx.decl_buffer((self.lanes,), kind, "whole")
            arrays.append(whole)
            first = tirx.floormod(at[self._along[-1].var], self.elements) == 0
            end = tirx.IfThenElse(first, end, self._rest(sums, at, again, whole))
        return tirx.SeqStmt([*map(tirx.AllocBuffer, arrays), begin, steps, end])

    def _rest(self, sums: Sequence[Sequence[tirx.Var]], at: Places, again: int, whole: tirx.Var) -> tirx.Stmt:
        """Store the elements behind those that the vector before has: sums that go on where there are several parts."""
        vector, row = self._along[-1].var, self._along[self.row].var
        first, behind = divmod(again, self.lanes)
        made = []
        for n, registers in enumerate(sums if behind else ()):

            def copied(e: Expr, source: tirx.Var = registers[first]) -> tirx.Stmt:
                return tirx.BufferStore(whole, source[e], [e])

            def new(e: Expr, n: int = n) -> tirx.Stmt:
                place = self._place(at | {row: at[row] + n, vector: at[vector] + again + e})
                return tirx.BufferStore(self.block.body.buffer, whole[e + behind], place)

            made += [loop(self.lanes, copied, "VECTORIZED"), loop(self.lanes - behind, new, "VECTORIZED")]
        first += 1 if behind else 0
        if first < len(sums[0]):
            made.append(self._each(sums, at, self._stored, first))
        return in_order(made)

    def _each(
        self,
        sums: Sequence[Sequence[tirx.Var]],
        at: Places,
        make: Callable[[tirx.Var, Expr, Places], tirx.Stmt],
        first: int = 0,
    ) -> tirx.Stmt:
        """A loop over the elements of each register, from the first of each row on."""
        row, vector = self._along[self.row].var, self._along[-1].var

        def of_register(n: int, r: int) -> tirx.Stmt:
            def element(e: Expr) -> tirx.Stmt:
                place = at[vector] + (e + r * self.lanes if r else e)
                return make(sums[n][r], e, at | {row: at[row] + n, vector: place})

            return loop(self.lanes, element, "VECTORIZED")

        return in_order([of_register(n, r) for n in range(len(sums)) for r in range(first, len(sums[n]))])

    def _stored(self, sums: tirx.Var, e: Expr, at: Places) -> tirx.Stmt:
        return tirx.BufferStore(self.block.body.buffer, sums[e], self._place(at))

    def _place(self, at: Places) -> list[Expr]:
        return [substituted(index, at) for index in self.block.body.indices]

    @property
    def _along(self) -> list[tirx.IterVar]:
        """The axes that are not summed."""
        return [axis for axis in self.block.iter_vars if axis.iter_type != tirx.IterVar.CommReduce]
