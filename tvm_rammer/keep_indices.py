"""Indices that stay what they are when TVM makes buffers flat.

`FlattenBuffer` simplifies indices as maps of loops (`IterMapSimplify`), and TVM 0.27 gets some of them wrong: it takes
`(159 - i) // 32` for `i // -32 + 4`, `(x % 6 + 4) // 3` for `(x + 4) % 6 // 3`, and breaks on an axis that is added and
taken away again. A reversed repetition, a slice of one, and a shifted window (Swin) have such indices. Functions are
flattened here first, and where an index then has other values, TVM does not see what is divided.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import s_tir, tirx
from tvm.error import InternalError
from tvm.ir import Expr, Range, TensorLoad

MAX_POINTS = 1 << 16
"""Iterations for which an index is compared with what TVM makes of it: all, or so many of them at random."""

_OTHER = {"int32": "int64", "int64": "float64"}
"""A type that holds all of another one's indices: by way of it, a dividend is no part of a map of loops.

float64 holds those below 2^53. TVM fails on numbers below 0 as uint64.
"""

_OPERATIONS: Mapping[type, Any] = {
    tirx.Add: np.add, tirx.Sub: np.subtract, tirx.Mul: np.multiply, tirx.Min: np.minimum, tirx.Max: np.maximum,
    tirx.FloorDiv: np.floor_divide, tirx.FloorMod: np.mod,
}  # fmt: skip


def keep_indices(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Hide the quotients of a function from TVM, if it would change an index.

    Parameters
    ----------
    func : tirx.PrimFunc
        Of blocks, scheduled or not, or of flat buffers.

    Returns
    -------
    tirx.PrimFunc
        The same function, unless an index cannot be proven to stay the same.
    """
    if not _may_change(func.body):
        return func
    try:
        before, after = _flattened(func)
    except InternalError:
        return hide_quotients(func)
    return func if _same_indices(before, after) else hide_quotients(func)


def hide_quotients(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Hide from TVM what a function divides: it goes to another type, and back."""

    def hide(node: tirx.FloorDiv | tirx.FloorMod) -> Expr:
        own = str(node.a.ty.dtype)
        if own not in _OTHER:
            return node
        return type(node)(tirx.Cast(own, tirx.Cast(_OTHER[own], node.a)), node.b)

    rules = [(tirx.FloorDiv, hide), (tirx.FloorMod, hide)]
    return func.with_body(tvm_ffi.structural_map(func.body, rules, order="post"))


def _may_change(body: tirx.Stmt) -> bool:
    """Whether an index divides a sum, or has a number below 0 in what it divides, or divides by one."""
    found: list[bool] = []

    def is_odd(node: Expr) -> bool:
        return isinstance(node, tirx.Add | tirx.Sub) or (isinstance(node, tirx.IntImm) and int(node) < 0)

    def visit(quotient: tirx.FloorDiv | tirx.FloorMod) -> None:
        if not any(found):
            tvm_ffi.structural_walk(quotient, [(Expr, lambda node: found.append(is_odd(node)))], order="pre")

    tvm_ffi.structural_walk(body, [(tirx.FloorDiv, visit), (tirx.FloorMod, visit)], order="pre")
    return any(found)


def _flattened(func: tirx.PrimFunc) -> tuple[tirx.Stmt, tirx.Stmt]:
    """Loops over arrays, and the same over flat ones.

    Raises
    ------
    InternalError
        TVM's analysis divides by the factor of an axis that is added and taken away again, as in i - i.
    """
    passes = [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.StmtSimplify(),
        s_tir.transform.LowerOpaqueBlock(),
    ]
    before = tvm.transform.Sequential(passes)(tvm.IRModule({"main": func}))
    return before["main"].body, tirx.transform.FlattenBuffer()(before)["main"].body


def _same_indices(before: tirx.Stmt, after: tirx.Stmt) -> bool:
    """Whether all accesses are those of another form of the code, in the same order."""
    analyzer, loops = tvm.sym.Analyzer(), {}

    def bind(loop: tirx.For) -> None:
        loops[loop.loop_var] = Range(loop.min, loop.min + loop.extent)
        analyzer.bind(loop.loop_var, loops[loop.loop_var])

    tvm_ffi.structural_walk(before, [(tirx.For, bind)], order="pre")
    old, new = _indices(before), _indices(after)
    return len(old) == len(new) and all(
        tvm_ffi.structural_equal(a, b) or analyzer.can_prove_equal(a, b) or _equal_at_points(a, b, loops)
        for a, b in zip(old, new, strict=True)
    )


def _indices(body: tirx.Stmt) -> list[Expr]:
    """Where the elements are that a statement accesses, in flat arrays."""
    found: list[Expr] = []

    def access(buffer: tirx.Buffer, indices: Sequence[Expr]) -> None:
        flat: Expr = tirx.IntImm("int64", 0)
        for index, extent in zip(indices, buffer.shape, strict=True):
            flat = flat * extent + index
        found.append(flat)

    visits = [
        (TensorLoad, lambda load: access(load.source, load.indices)),
        (tirx.BufferStore, lambda store: access(store.buffer, store.indices)),
    ]
    tvm_ffi.structural_walk(body, visits, order="pre")
    return found


def _equal_at_points(a: Expr, b: Expr, loops: Mapping[tirx.Var, Range]) -> bool:
    """Whether two indices are equal in iterations of all loops; not if their extents are no constants."""
    used = set(tirx.analysis.undefined_vars(a)) | set(tirx.analysis.undefined_vars(b))
    points = _points({var: loop for var, loop in loops.items() if var in used})
    first, second = _evaluated(a, points), _evaluated(b, points)
    return first is not None and second is not None and bool(np.all(first == second))


def _points(loops: Mapping[tirx.Var, Range]) -> dict[tirx.Var, NDArray[Any]]:
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
