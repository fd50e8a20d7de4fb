"""Quotients that TVM does not see."""

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.error import InternalError
from tvm.ir import Expr

from .accesses import same_accesses

_OTHER = {"int32": "int64", "int64": "float64"}
"""A type that holds all of another one's indices: by way of it, a dividend is no part of a map of loops.

float64 holds those below 2^53. TVM fails on numbers below 0 as uint64.
"""


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
    return func if same_accesses(before, after) else hide_quotients(func)


def hide_quotients(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Hide from TVM what a function divides: it goes to another type, and back."""

    def hide(node: tirx.FloorDiv | tirx.FloorMod) -> Expr:
        own = str(node.a.ty.dtype)
        if own not in _OTHER:
            return node
        return type(node)(tirx.Cast(own, tirx.Cast(_OTHER[own], node.a)), node.b)

    rules = [(tirx.FloorDiv, hide), (tirx.FloorMod, hide)]
    return func.with_body(tvm_ffi.structural_map(func.body, rules, order="post"))


def lower_blocks() -> list[tvm.transform.Pass]:
    """The passes that make loops over arrays of blocks, as TVM's own pipeline has them before `FlattenBuffer`."""
    return [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.StmtSimplify(),
        s_tir.transform.LowerOpaqueBlock(),
    ]


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
    before = tvm.transform.Sequential(lower_blocks())(tvm.IRModule({"main": func}))
    return before["main"].body, tirx.transform.FlattenBuffer()(before)["main"].body
