"""Kernels with indices that TVM would change when it lowers them.

Where buffers become flat, TVM 0.27 simplifies their indices as maps of loops (`IterMapSimplify`), and takes
`(x % 6 + 4) // 3` for `(x + 4) % 6 // 3`, which differs where the sum goes past 6. Such indices come from fused loops,
whose remainders are a block's axes, and an offset before a division, as in a slice of a repetition.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import s_tir, tirx
from tvm.error import InternalError
from tvm.ir import Expr, Range, TensorLoad

from .variables import substituted
from .work import shape_of

MAX_POINTS = 1 << 20
"""Iterations for which an index is compared with what TVM makes of it: all, or so many of them at random."""

_OPERATIONS: Mapping[type, Any] = {
    tirx.Add: np.add, tirx.Sub: np.subtract, tirx.Mul: np.multiply, tirx.Min: np.minimum, tirx.Max: np.maximum,
    tirx.FloorDiv: np.floor_divide, tirx.FloorMod: np.mod,
}  # fmt: skip

Loops = Mapping[tirx.Var, Range]


def changes_an_index(func: tirx.PrimFunc) -> bool:
    """Whether TVM lowers an index of a scheduled kernel to one with other values, or breaks on it."""
    return _divides_a_sum(func.body) and any(_changes(*access) for access in _accesses(func.body, {}, {}))


def _divides_a_sum(code: Any) -> bool:
    found: list[bool] = []

    def visit(node: tirx.FloorDiv | tirx.FloorMod) -> None:
        found.append(isinstance(node.a, tirx.Add | tirx.Sub))

    tvm_ffi.structural_walk(code, [(tirx.FloorDiv, visit), (tirx.FloorMod, visit)], order="pre")
    return any(found)


def _accesses(stmt: Any, loops: Loops, values: Mapping[tirx.Var, Expr]) -> Iterator[tuple[Expr, Loops]]:
    """The flat indices, in loops, of all accesses within a statement that divide a sum of axes."""
    match stmt:
        case tirx.SeqStmt():
            for part in stmt.seq:
                yield from _accesses(part, loops, values)
        case tirx.For():
            yield from _accesses(stmt.body, {**loops, stmt.loop_var: Range(stmt.min, stmt.min + stmt.extent)}, values)
        case s_tir.SBlockRealize():
            axes = {a.var: substituted(v, values) for a, v in zip(stmt.block.iter_vars, stmt.iter_values, strict=True)}
            yield from _accesses(stmt.block.body, loops, {**values, **axes})
        case tirx.IfThenElse():
            for part in (stmt.then_case, stmt.else_case):
                yield from _accesses(part, loops, values)
        case tirx.AttrStmt():
            yield from _accesses(stmt.body, loops, values)
        case tirx.BufferStore():
            loads: list[TensorLoad] = []
            tvm_ffi.structural_walk(stmt, [(TensorLoad, loads.append)], order="pre")
            accesses = [(stmt.buffer, stmt.indices), *((load.source, load.indices) for load in loads)]
            for buffer, indices in accesses:
                if any(map(_divides_a_sum, indices)):
                    yield _flat([substituted(index, values) for index in indices], shape_of(buffer)), loops


def _flat(indices: list[Expr], shape: tuple[int, ...]) -> Expr:
    flat = indices[0]
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        flat = flat * extent + index
    return flat


def _changes(index: Expr, loops: Loops) -> bool:
    try:
        simplified = tvm.sym.iter_map_simplify([index], dict(loops), True, "surjective")[0]
    except InternalError:  # it divides by the factor of an axis that is added and taken away, as in i - i
        return True
    if tvm_ffi.structural_equal(simplified, index):
        return False
    points = _points({var: loop for var, loop in loops.items() if var in set(tirx.analysis.undefined_vars(index))})
    before, after = _evaluated(index, points), _evaluated(simplified, points)
    return before is None or after is None or bool(np.any(before != after))


def _points(loops: Loops) -> dict[tirx.Var, NDArray[Any]]:
    """Values of loops' variables in iterations of them; none where an extent is no constant."""
    if not all(isinstance(n, tirx.IntImm) for loop in loops.values() for n in (loop.min, loop.extent)):
        return {}
    extents = [int(loop.extent) for loop in loops.values()]
    if not extents:
        return {}
    if math.prod(extents) <= MAX_POINTS:
        grid = np.indices(extents).reshape(len(extents), -1)
    else:
        grid = np.array([np.random.default_rng(0).integers(0, n, MAX_POINTS) for n in extents])
    return {var: int(loop.min) + places for (var, loop), places in zip(loops.items(), grid, strict=True)}


def _evaluated(index: Expr, points: Mapping[tirx.Var, NDArray[Any]]) -> NDArray[Any] | None:
    """An index at points; None where it is more than arithmetic."""
    if isinstance(index, tirx.Var):
        return points.get(index)
    if isinstance(index, tirx.IntImm):
        return np.asarray(int(index))
    operation = _OPERATIONS.get(type(index))
    if operation is None:
        return _evaluated(index.value, points) if isinstance(index, tirx.Cast) else None
    a, b = _evaluated(index.a, points), _evaluated(index.b, points)
    return None if a is None or b is None else np.asarray(operation(a, b))
