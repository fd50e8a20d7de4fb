"""Register tiles: where several rows of sums read the same vectors, these are read once for all of them.

A product of 150 rows by a matrix that no cache holds took as long as to read the matrix 150 times.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad

from ....kernel import SPREAD
from ...bindings import rewrite_prim_funcs, with_root_body
from ...module_pass import module_pass
from .vectorise import LEAST_ELEMENTS, is_at, sums_of

Places = dict[tirx.Var, Expr]
"""Where the axes of a block are."""

LEAST_ROWS, MOST_ROWS = 3, 8
"""Of a tile: rows that are a power of two apart meet in one set of a cache, which holds eight lines or more."""
_REGISTERS, _FEWER = {64: (24, 4)}, (12, 2)
"""Vector registers for the sums of a tile, and of one row: by their bytes; there are 32 in all, or 16 at least."""
LEAST_SPREAD = 1 << 19
"""Products for each row from which on a loop over vectors is spread over the workers."""
MOST_STEPS = 1024
"""Of a sum that are done for all rows, before more of it: what they read fits into a cache of one core."""


def TileSums(register_bytes: int) -> tvm.transform.Pass:
    """Make the pass that tiles the sums of functions in blocks that nobody scheduled.

    Each element is summed up in the order that it had.

    Parameters
    ----------
    register_bytes : int
        Of a vector register.
    """
    rewrite = partial(_with_tiles, register_bytes)

    @module_pass("TileSums")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_prim_funcs(mod, rewrite)

    return run


def _with_tiles(register_bytes: int, func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    if "tirx.is_scheduled" in (func.attrs or {}):
        return None
    tiles = {realize: tile for realize in sums_of(func) if (tile := _tile(realize, register_bytes)) is not None}
    if not tiles:
        return None
    root = func.body.block
    statements = list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]
    made = [tile.code() if (tile := _of_nest(nest, tiles)) is not None else nest for nest in statements]
    return with_root_body(func, made)


@dataclass(frozen=True, slots=True)
class _Tile:
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
        axes = self.block.iter_vars
        along = [axis for axis in axes if axis.iter_type != tirx.IterVar.CommReduce]
        before, row, after, last = along[: self.row], along[self.row], along[self.row + 1 : -1], along[-1]
        across = axes[len(along) :]
        if isinstance(row.dom.extent, tirx.IntImm):
            # Rows of a known number, as filters: what they multiply with stays in the cache.
            def of_rows(at: Places, rows: int) -> tirx.Stmt:
                return self._nested(after, at, lambda at: self._each_vector(last, at, partial(self._sum, rows, across)))

            spread = self._is_long(along[self.row :], across)
            return self._nested(before, {}, lambda at: self._each_rows(row, at, of_rows, spread=spread))

        def of_part(at: Places, part: Expr | None) -> tirx.Stmt:
            def of_vector(at: Places) -> tirx.Stmt:
                return self._each_rows(row, at, lambda at, rows: self._sum(rows, across, at, part))

            return self._each_vector(last, at, of_vector, spread=self._is_long([last], across))

        # Of any number, as those of a matrix: what all of them read of a part of the sum stays in the cache.
        parts = -(-int(across[0].dom.extent) // MOST_STEPS) if len(across) == 1 else 1
        return self._nested([*before, *after], {}, lambda at: _loop(
            parts, lambda part: of_part(at, part if parts > 1 else None)
        ))  # fmt: skip

    def _nested(self, axes: Sequence[tirx.IterVar], at: Places, body: Callable[[Places], tirx.Stmt]) -> tirx.Stmt:
        if not axes:
            return body(at)
        first, *others = axes
        return _loop(first.dom.extent, lambda i: self._nested(others, at | {first.var: i}, body))

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

        return _loop(count, lambda i: body(at | {axis.var: begin(i)}), spread=spread and count > 1)

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
                made.append(_loop(count, of_tile))
            elif int(count) > 0:
                made.append(_loop(count, of_tile, spread=spread and int(count) > 1))
            done, left = done + count * size, left - count * size
        return _in_order(made)

    def _sum(self, rows: int, across: Sequence[tirx.IterVar], at: Places, part: Expr | None = None) -> tirx.Stmt:
        """A tile of results: from what they begin with, or what was summed up of them before."""
        block, store = self.block, self.block.body
        kind, registers = str(store.value.ty.dtype), self.elements // self.lanes
        # LLVM keeps arrays in registers that it reads and writes as a whole, and those of one register.
        sums = [[tirx.decl_buffer((self.lanes,), kind, f"sums{n}_{r}") for r in range(registers)] for n in range(rows)]
        axes = [axis for axis in block.iter_vars if axis.iter_type != tirx.IterVar.CommReduce]
        row, vector = axes[self.row].var, axes[-1].var

        def each(make: Callable[[tirx.Var, Expr, Places], tirx.Stmt], at: Places = at, first: int = 0) -> tirx.Stmt:
            def of_register(n: int, r: int) -> tirx.Stmt:
                def element(e: Expr) -> tirx.Stmt:
                    place = at[vector] + (e + r * self.lanes if r else e)
                    return make(sums[n][r], e, at | {row: at[row] + n, vector: place})

                return _loop(self.lanes, element, "VECTORIZED")

            return _in_order([of_register(n, r) for n in range(rows) for r in range(first, registers)])

        def stored(sums: tirx.Var, e: Expr, at: Places, begin: int = 0) -> tirx.Stmt:
            indices = [_substituted(index, at) for index in store.indices]
            return tirx.BufferStore(store.buffer, sums[e + begin if begin else e], indices)

        def loaded(sums: tirx.Var, e: Expr, at: Places) -> tirx.Stmt:
            indices = [_substituted(index, at) for index in store.indices]
            return tirx.BufferStore(sums, tirx.BufferLoad(store.buffer, indices), [e])

        def step(at: Places) -> tirx.Stmt:
            def added(sums: tirx.Var, e: Expr, at: Places) -> tirx.Stmt:
                value = tvm_ffi.structural_map(
                    store.value, [(TensorLoad, lambda load: sums[e] if is_at(load, store) else load)], order="post"
                )
                return tirx.BufferStore(sums, _substituted(value, at), [e])

            return each(added, at)

        begin = each(lambda sums, e, at: tirx.BufferStore(sums, _substituted(block.init.value, at), [e]))
        if part is not None:
            begin = tirx.IfThenElse(part == 0, begin, each(loaded))
            (summed,) = across
            count = tirx.min(summed.dom.extent - part * MOST_STEPS, tirx.IntImm("int64", MOST_STEPS))
            steps = _loop(count, lambda k: step(at | {summed.var: part * MOST_STEPS + k}))
        else:
            steps = self._nested(across, at, step)
        arrays, end = [each for row in sums for each in row], each(stored)
        if again := -int(axes[-1].dom.extent) % self.elements:
            # What the vector before has stored is a sum that goes on where there are several parts.
            skipped, begins = divmod(again, self.lanes)
            rest = []
            if begins:
                arrays.append(whole := tirx.decl_buffer((self.lanes,), kind, "whole"))
                for n in range(rows):

                    def new(e: Expr, n: int = n) -> tirx.Stmt:
                        return stored(whole, e, at | {row: at[row] + n, vector: at[vector] + again + e}, begins)

                    def copied(e: Expr, n: int = n) -> tirx.Stmt:
                        return tirx.BufferStore(whole, sums[n][skipped][e], [e])

                    rest += [_loop(self.lanes, copied, "VECTORIZED"), _loop(self.lanes - begins, new, "VECTORIZED")]
                skipped += 1
            rest += [each(stored, first=skipped)] if skipped < registers else []
            end = tirx.IfThenElse(tirx.floormod(at[vector], self.elements) == 0, end, _in_order(rest))
        return tirx.SeqStmt([*map(tirx.AllocBuffer, arrays), begin, steps, end])


def _in_order(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def _tile(realize: s_tir.SBlockRealize, register_bytes: int) -> _Tile | None:
    """A tile of the results of a block, if rows of them read the same vectors."""
    block = realize.block
    store, axes = block.body, [axis for axis in block.iter_vars if axis.iter_type != tirx.IterVar.CommReduce]
    whole = isinstance(realize.predicate, tirx.IntImm) and int(realize.predicate) == 1
    wide = all(str(axis.var.ty.dtype) == "int64" for axis in block.iter_vars)
    if not (isinstance(block.init, tirx.BufferStore) and whole and wide):
        return None
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(store.value, (TensorLoad, loads.append), order="pre")
    vectors = [load for load in loads if not is_at(load, store) and _reads(load, axes[-1].var)]
    free = [n for n, axis in enumerate(axes[:-1]) if not any(_reads(load, axis.var) for load in vectors)]
    if not vectors or not free:
        return None
    (most, vector), item = _REGISTERS.get(register_bytes, _FEWER), store.value.ty.dtype.bits // 8
    elements, lanes = _width(int(axes[-1].dom.extent), register_bytes // item, most, vector)
    rows = min(most // (elements // lanes), MOST_ROWS)
    extent = axes[free[-1]].dom.extent
    rows = min(rows, int(extent)) if isinstance(extent, tirx.IntImm) else rows
    return _Tile(block, free[-1], rows, elements, lanes) if rows >= LEAST_ROWS and elements >= LEAST_ELEMENTS else None


def _width(extent: int, lanes: int, most: int, most_of_row: int) -> tuple[int, int]:
    """How many elements of a row a tile has, and how many of them are in a register.

    Parameters
    ----------
    extent : int
        Of the axis that the vectors go along.
    lanes, most, most_of_row : int
        Elements of a register; registers for sums, and for those of one row.
    """
    lanes = min(lanes, 1 << (extent.bit_length() - 1))

    def loads(registers: int) -> float:
        """Of all vectors, where each register of sums is one, and each element of another row that is read."""
        rows = min(most // registers, MOST_ROWS)
        vectors = -(-extent // (registers * lanes)) * registers
        return vectors * (1 + 1 / registers + 1 / rows)

    return min((n for n in range(most_of_row, 0, -1) if n * lanes <= extent), key=loads) * lanes, lanes


def _of_nest(nest: tirx.Stmt, tiles: dict[s_tir.SBlockRealize, _Tile]) -> _Tile | None:
    """The tile of a nest of loops that has one block, and goes along each of its axes once."""
    loops: list[tirx.For] = []
    while isinstance(nest, tirx.For):
        loops.append(nest)
        nest = nest.body
    found = next((tile for realize, tile in tiles.items() if realize.same_as(nest)), None)
    if found is None or {loop.loop_var for loop in loops} != set(nest.iter_values):
        return None
    return found if all(loop.kind == tirx.ForKind.SERIAL for loop in loops) else None


def _loop(
    extent: Expr | int, body: Callable[[Expr], tirx.Stmt], kind: str = "SERIAL", *, spread: bool = False
) -> tirx.Stmt:
    var = tirx.Var("i", "int64")
    begin, count = tirx.IntImm("int64", 0), tirx.IntImm("int64", extent) if isinstance(extent, int) else extent
    marks = {SPREAD: True} if spread else {}
    return tirx.For(var, begin, count, getattr(tirx.ForKind, kind), body(var), annotations=marks)


def _substituted(expr: Expr, at: Places) -> Expr:
    return tvm_ffi.structural_map(expr, (tirx.Var, lambda var: at.get(var, var)), order="post")


def _reads(load: TensorLoad, var: tirx.Var) -> bool:
    return any(var in tirx.analysis.undefined_vars(index) for index in load.indices)
