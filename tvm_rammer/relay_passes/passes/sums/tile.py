"""Register tiles: where several rows of sums read the same vectors, these are read once for all of them.

A product of 150 rows by a matrix that no cache holds took as long as to read the matrix 150 times.
"""

from functools import partial

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad

from ...bindings import rewrite_prim_funcs, with_root_body
from ...module_pass import module_pass
from .tile_code import Tile
from .vectorise import LEAST_ELEMENTS, is_at, sums_of

LEAST_ROWS, MOST_ROWS = 3, 8
"""Of a tile: rows that are a power of two apart meet in one set of a cache, which holds eight lines or more."""
_REGISTERS, _FEWER = {64: (24, 4)}, (12, 2)
"""Vector registers for the sums of a tile, and of one row: by their bytes; there are 32 in all, or 16 at least."""


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


def _tile(realize: s_tir.SBlockRealize, register_bytes: int) -> Tile | None:
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
    return Tile(block, free[-1], rows, elements, lanes) if rows >= LEAST_ROWS and elements >= LEAST_ELEMENTS else None


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


def _of_nest(nest: tirx.Stmt, tiles: dict[s_tir.SBlockRealize, Tile]) -> Tile | None:
    """The tile of a nest of loops that has one block, and goes along each of its axes once."""
    loops: list[tirx.For] = []
    while isinstance(nest, tirx.For):
        loops.append(nest)
        nest = nest.body
    found = next((tile for realize, tile in tiles.items() if realize.same_as(nest)), None)
    if found is None or {loop.loop_var for loop in loops} != set(nest.iter_values):
        return None
    return found if all(loop.kind == tirx.ForKind.SERIAL for loop in loops) else None


def _reads(load: TensorLoad, var: tirx.Var) -> bool:
    return any(var in tirx.analysis.undefined_vars(index) for index in load.indices)
