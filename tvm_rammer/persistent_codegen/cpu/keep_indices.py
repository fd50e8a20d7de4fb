"""Indices of rTask functions that stay what they are when TVM makes flat buffers flat once more.

An rTask function is lowered, and then goes through TVM's pipeline with the rest of the module. There `FlattenBuffer`
simplifies its indices as maps of loops under the conditions around them (`IterMapSimplify`). The number of the rTask is
no loop any more, and TVM 0.27 takes the quotient and the remainder of `(i - 2) // 8 * 8 + (i + 6) % 8`, under
`2 <= rtask * 32 + i`, for those of another number. A window that is shifted (Swin) has such indices.
"""

from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, Range, TensorLoad

_OTHER = {"int32": "int64", "int64": "int32"}
"""A type by way of which a dividend goes, so that it is no part of a map of loops."""


def keep_indices(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Hide the quotients of a function from TVM, if it would change an index.

    Parameters
    ----------
    func : tirx.PrimFunc
        Of flat buffers.

    Returns
    -------
    tirx.PrimFunc
        The same function, unless an index cannot be proven to stay the same.
    """
    if not _divides_a_sum(func.body):
        return func
    before = s_tir.transform.StmtSimplify()(tvm.IRModule({"rtask": func}))
    after = tirx.transform.FlattenBuffer()(before)
    return func if _same_indices(before["rtask"].body, after["rtask"].body) else _hidden(func)


def _divides_a_sum(body: tirx.Stmt) -> bool:
    found: list[bool] = []

    def visit(node: tirx.FloorDiv | tirx.FloorMod) -> None:
        found.append(isinstance(node.a, tirx.Add | tirx.Sub))

    tvm_ffi.structural_walk(body, [(tirx.FloorDiv, visit), (tirx.FloorMod, visit)], order="pre")
    return any(found)


def _same_indices(before: tirx.Stmt, after: tirx.Stmt) -> bool:
    """Whether all accesses are those of another form of the code, in the same order."""
    analyzer = tvm.sym.Analyzer()

    def bind(loop: tirx.For) -> None:
        analyzer.bind(loop.loop_var, Range(loop.min, loop.min + loop.extent))

    tvm_ffi.structural_walk(before, [(tirx.For, bind)], order="pre")
    old, new = _indices(before), _indices(after)
    return len(old) == len(new) and all(
        tvm_ffi.structural_equal(a, b) or analyzer.can_prove_equal(a, b) for a, b in zip(old, new, strict=True)
    )


def _indices(body: tirx.Stmt) -> list[Expr]:
    found: list[Expr] = []

    def access(node: Any) -> None:
        found.extend(node.indices)

    tvm_ffi.structural_walk(body, [(TensorLoad, access), (tirx.BufferStore, access)], order="pre")
    return found


def _hidden(func: tirx.PrimFunc) -> tirx.PrimFunc:
    def hide(node: tirx.FloorDiv | tirx.FloorMod) -> Expr:
        own = str(node.a.ty.dtype)
        if own not in _OTHER:
            return node
        return type(node)(tirx.Cast(own, tirx.Cast(_OTHER[own], node.a)), node.b)

    rules = [(tirx.FloorDiv, hide), (tirx.FloorMod, hide)]
    return func.with_body(tvm_ffi.structural_map(func.body, rules, order="post"))
