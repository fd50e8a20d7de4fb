"""Accesses of loops over arrays: indices into flat arrays, under conditions, and whether they have the same values."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import tirx
from tvm.ir import Call, Expr, Range, TensorLoad
from tvm.tirx.buffer import BufferType

MAX_POINTS = 1 << 20
"""Iterations in all of which an index is compared with what TVM makes of it, if TVM cannot prove it to be the same."""

_OPERATIONS: Mapping[type, Any] = {
    tirx.Add: np.add, tirx.Sub: np.subtract, tirx.Mul: np.multiply, tirx.Min: np.minimum, tirx.Max: np.maximum,
    tirx.FloorDiv: np.floor_divide, tirx.FloorMod: np.mod,
    tirx.LT: np.less, tirx.LE: np.less_equal, tirx.GT: np.greater, tirx.GE: np.greater_equal, tirx.EQ: np.equal,
    tirx.NE: np.not_equal, tirx.And: np.logical_and, tirx.Or: np.logical_or,
}  # fmt: skip

_FIELDS = ("seq", "condition", "indices", "args", "vectors", "base", "a", "b", "value", "body")
"""Of statements and expressions, those that hold others."""


def same_accesses(before: tirx.Stmt, after: tirx.Stmt) -> bool:
    """Whether all accesses are those of another form of the code, in the same order."""
    old, new = list(_accesses(before, {}, ())), list(_accesses(after, {}, ()))
    return len(old) == len(new) and all(a.becomes(b.index) for a, b in zip(old, new, strict=True))


@dataclass(frozen=True)
class _Access:
    """Where an element is in a flat array, and what is known there: ranges of variables, and conditions."""

    index: Expr
    ranges: Mapping[tirx.Var, Range]
    conditions: tuple[Expr, ...]

    def becomes(self, index: Expr) -> bool:
        """Whether another index is the same one."""
        own, index = _without_loads(self.index), _without_loads(index)
        if tvm_ffi.structural_equal(own, index):
            return True
        analyzer = tvm.sym.Analyzer()
        for var, values in self.ranges.items():
            analyzer.bind(var, values)
        with contextlib.ExitStack() as known:
            for condition in self.conditions:
                known.enter_context(analyzer.constraint_scope(condition))
            return bool(analyzer.can_prove_equal(own, index)) or self._are_at_all_points(own, index)

    def _are_at_all_points(self, own: Expr, index: Expr) -> bool:
        exprs = (own, index, *self.conditions)
        used = {var for expr in exprs for var in tirx.analysis.undefined_vars(expr)}
        points = _points({var: values for var, values in self.ranges.items() if var in used})
        before, after = _evaluated(own, points), _evaluated(index, points)
        if before is None or after is None:
            return False
        holds = [found for c in self.conditions if (found := _evaluated(c, points)) is not None]
        *holds, equal = np.broadcast_arrays(*holds, before == after)
        return bool(np.all(equal | ~np.logical_and.reduce(holds)))


def _accesses(code: Any, ranges: Mapping[tirx.Var, Range], known: tuple[Expr, ...]) -> Iterator[_Access]:
    """All accesses within code."""
    parts: Sequence[tuple[Any, Mapping[tirx.Var, Range], tuple[Expr, ...]]] = ()
    match code:
        case tirx.For():
            inside = {**ranges, code.loop_var: Range(code.min, code.min + code.extent)}
            parts = [(code.min, ranges, known), (code.extent, ranges, known), (code.body, inside, known)]
        case tirx.AttrStmt() if isinstance(code.node, tirx.IterVar):  # the number of a block or thread
            inside = {**ranges, code.node.var: Range(tirx.const(0, str(code.value.ty.dtype)), code.value)}
            parts = [(code.body, inside, known)]
        case tirx.IfThenElse():
            parts = _branches(code.condition, code.then_case, code.else_case, ranges, known)
        case tirx.Select():
            parts = _branches(code.condition, code.true_value, code.false_value, ranges, known)
        case Call() if str(getattr(code.op, "name", "")).endswith(".if_then_else"):
            condition, yes, no = code.args
            parts = _branches(condition, yes, no, ranges, known)
        case _:
            if isinstance(code, TensorLoad | tirx.BufferStore):
                buffer = code.source if isinstance(code, TensorLoad) else code.buffer
                yield _Access(_flat(code.indices, buffer.ty), ranges, known)
            parts = [(part, ranges, known) for part in _parts(code)]
    for part in parts:
        yield from _accesses(*part)


def _branches(
    condition: Expr, yes: Any, no: Any, ranges: Mapping[tirx.Var, Range], known: tuple[Expr, ...]
) -> list[tuple[Any, Mapping[tirx.Var, Range], tuple[Expr, ...]]]:
    parts = [(condition, ranges, known), (yes, ranges, (*known, condition))]
    return parts if no is None else [*parts, (no, ranges, (*known, tirx.Not(condition)))]


def _parts(code: Any) -> Iterator[Any]:
    """What code consists of that may hold accesses."""
    for name in _FIELDS:
        part = getattr(code, name, None)
        if isinstance(part, Expr | tirx.Stmt):
            yield part
        elif isinstance(part, Sequence) and not isinstance(part, str):
            yield from part


@functools.cache
def _data(n: int) -> tirx.Var:
    return tirx.Var(f"data{n}", "int64")


def _without_loads(index: Expr) -> Expr:
    """An index with variables for what it takes from memory: those accesses are compared by themselves."""
    count = itertools.count()

    def of_data(load: TensorLoad) -> Expr:
        return tirx.Cast(str(load.ty.dtype), _data(next(count)))

    return tvm_ffi.structural_map(index, (TensorLoad, of_data), order="post")


def _flat(indices: Sequence[Expr], buffer: BufferType) -> Expr:
    zero = tirx.IntImm("int64", 0)
    start = zero if buffer.elem_offset is None else buffer.elem_offset
    if buffer.strides:
        return sum((index * stride for index, stride in zip(indices, buffer.strides, strict=True)), start)
    flat: Expr = zero
    for index, extent in zip(indices, buffer.shape, strict=True):
        flat = flat * extent + index
    return flat + start


def _points(loops: Mapping[tirx.Var, Range]) -> dict[tirx.Var, NDArray[Any]]:
    """Values of loops' variables in all iterations; none where an extent is no constant, or there are too many."""
    if not all(isinstance(n, tirx.IntImm) for loop in loops.values() for n in (loop.min, loop.extent)):
        return {}
    extents = [int(loop.extent) for loop in loops.values()]
    if not extents or math.prod(extents) > MAX_POINTS:
        return {}
    grid = np.indices(extents).reshape(len(extents), -1)
    return {var: int(loop.min) + places for (var, loop), places in zip(loops.items(), grid, strict=True)}


def _evaluated(index: Expr, points: Mapping[tirx.Var, NDArray[Any]]) -> NDArray[Any] | None:
    """An index at points; None where it is more than arithmetic."""
    if isinstance(index, tirx.Var):
        return points.get(index)
    if isinstance(index, tirx.IntImm):
        return np.asarray(int(index))
    if isinstance(index, tirx.Not):
        found = _evaluated(index.a, points)
        return None if found is None else np.logical_not(found)
    operation = _OPERATIONS.get(type(index))
    if operation is None:
        return _evaluated(index.value, points) if isinstance(index, tirx.Cast) else None
    a, b = _evaluated(index.a, points), _evaluated(index.b, points)
    return None if a is None or b is None else np.asarray(operation(a, b))
