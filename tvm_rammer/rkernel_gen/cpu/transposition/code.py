"""The code of a transposition: tiles of two axes are turned in registers, the innermost ones of input and output."""

import math
from collections.abc import Callable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from ...analysis.variables import substituted
from ..in_registers import transpose
from ..loops import ending, loop, number, sequence
from .problem import Transposition


def transposition_code(func: tirx.PrimFunc, problem: Transposition, simd: int, parts: int) -> tirx.PrimFunc:
    """Generate the function of a tiling; its outermost loop is parallel."""
    tiles, split = list(problem.tiles(simd)), problem.split_axis(simd, parts)
    assert split is not None
    whole, share = tiles[split], -(-tiles[split] // parts)
    tiles[split] = share
    scratch = [] if problem.is_plain else _scratch(problem, simd)

    def rtask(part: Expr) -> tirx.Stmt:
        first = tirx.min(part * share, number(whole - share)) if whole % parts else part * share

        def tile(at: list[Expr]) -> tirx.Stmt:
            return _tile(problem, simd, [i + first if a == split else i for a, i in enumerate(at)], scratch)

        return sequence([*(tirx.AllocBuffer(buffer) for buffer in scratch), _nest(tiles, tile)])

    body = loop(parts, rtask, "PARALLEL")
    return tirx.PrimFunc(func.params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True)


def _scratch(problem: Transposition, simd: int) -> list[tirx.Buffer]:
    """For each turned load a tile that is turned."""
    shape = problem.tile(simd)
    return [tirx.decl_buffer(shape, problem.dtype, "turned", scope="local") for _ in problem.loads]


def _nest(extents: Sequence[int], body: Callable[[list[Expr]], tirx.Stmt], outer: Sequence[Expr] = ()) -> tirx.Stmt:
    if not extents:
        return body(list(outer))
    return loop(extents[0], lambda i: _nest(extents[1:], body, [*outer, i]))


def _tile(problem: Transposition, simd: int, at: Sequence[Expr], scratch: Sequence[tirx.Buffer]) -> tirx.Stmt:
    """A tile: its rows are loaded along the data's innermost axis, its columns stored along the output's.

    Where elements are not only copied, the columns are stored in scratch, and the output's vectors computed from there.
    """
    width, rows = problem.tile(simd)
    turned, last = problem.turned, len(problem.extents) - 1
    start = list(at)
    start[turned] = ending(at[turned], width, problem.extents[turned])
    start[last] = ending(at[last], rows, problem.extents[last])

    def row(load: TensorLoad, number_of_row: int) -> Expr:
        place = list(start)
        place[last] = start[last] + number_of_row
        *outer, inner = (substituted(i, dict(zip(problem.axes, place, strict=True))) for i in load.indices)
        return load.source[(*outer, tirx.Ramp(inner, number(1), width))]

    def store(column: int, vector: Expr) -> tirx.Stmt:
        index = list(start)
        index[turned] = start[turned] + column
        index[last] = tirx.Ramp(start[last], number(1), rows) if rows > 1 else start[last]
        return tirx.BufferStore(problem.out, vector, index)

    def columns(load: TensorLoad, store: Callable[[int, Expr], tirx.Stmt]) -> list[tirx.Stmt]:
        return transpose([row(load, n) for n in range(rows)], width, store, problem.dtype)

    if problem.is_plain:
        return sequence(columns(problem.loads[0], store))

    def keep(buffer: tirx.Buffer) -> Callable[[int, Expr], tirx.Stmt]:
        return lambda column, vector: tirx.BufferStore(
            buffer, vector, [number(column), tirx.Ramp(number(0), number(1), rows)]
        )

    def compute(column: Expr, element: Expr) -> tirx.Stmt:
        place = list(start)
        place[turned], place[last] = start[turned] + column, start[last] + element

        def kept(load: TensorLoad) -> TensorLoad:
            found = (n for n, other in enumerate(problem.loads) if tvm_ffi.structural_equal(load, other))
            n = next(found, None)
            return load if n is None else scratch[n][column, element]

        value = tvm_ffi.structural_map(problem.value, (TensorLoad, kept), order="post")
        value = substituted(value, dict(zip(problem.axes, place, strict=True)))
        return tirx.BufferStore(problem.out, value, place)

    turn = [s for load, buffer in zip(problem.loads, scratch, strict=True) for s in columns(load, keep(buffer))]
    return sequence([*turn, loop(width, lambda c: loop(rows, lambda e: compute(c, e), "VECTORIZED"))])


def cycles(problem: Transposition, simd: int, parts: int) -> float:
    """Cycles of an rTask, without those of memory: two shuffles or one store a cycle."""
    width, rows = problem.tile(simd)
    count = math.prod(problem.tiles(simd)) / parts
    turn = rows + rows * max(1, rows.bit_length() - 1) + width
    return count * (len(problem.loads) * turn + (0 if problem.is_plain else width * (1 + problem.vector_cycles)))
