"""Remainders in the indices of rTask functions that LLVM may not take for a row of elements that follow each other.

LLVM 22 makes vectors of a loop that loads `x[i % 4 + base]`, with 32-bit indices and a base that outer loops change, as
if `i % 4` counted on: a loop of 16 loads 8 elements that follow each other. It assumes at first that `i % 4` does not
wrap around as a number of two bits, and then takes that for implied by the assumption that the sum does not wrap around
as one of 32 bits. Windows of 4 or 8 pixels (Swin Transformers) have such indices.

LLVM makes vectors of innermost loops. A remainder that changes with outer loops alone stays what it is: LLVM would take
some that are hidden together as a vector, whose elements an innermost loop then extracts in each of its steps.
"""

from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

_IDENTITY = "llvm.umul.fix"
"""Times 1, with no bits behind the point: LLVM computes it in vectors, makes no instruction of it, and does not look
through it when it asks how an index changes."""

MOST_UNROLLED = 2048
"""Instructions of the loops within a loop, at most, that LLVM may unroll, whereupon that loop is an innermost one: its
own limit is 300, and four times that where it gains much."""


def keep_remainders(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Hide remainders by powers of 2 from LLVM where they depend on a loop that it may make vectors of.

    Parameters
    ----------
    func : tirx.PrimFunc
        Lowered; loops that are to be vectors are marked so.
    """
    if not _has_remainders(func.body):
        return func
    innermost: set[tirx.Var] = set()
    vectors: set[tirx.Var] = set()

    def loop(node: tirx.For) -> None:
        if node.kind == tirx.ForKind.VECTORIZED:
            vectors.add(node.loop_var)
        elif _instructions(node.body) <= MOST_UNROLLED or not _has_loops(node.body):
            innermost.add(node.loop_var)

    tvm_ffi.structural_walk(func.body, [(tirx.For, loop)], order="pre")

    def hide(node: tirx.FloorMod | tirx.Mod) -> Expr:
        used = set(tirx.analysis.undefined_vars(node))
        if not _is_power_of_two(node.b) or not used & innermost or used & vectors:
            return node
        dtype = str(node.ty.dtype)
        one = tirx.const(1, dtype)
        return tirx.call_llvm_pure_intrin(dtype, _IDENTITY, node, one, tirx.const(0, "int32"))

    def indices(node: Any) -> list[Expr]:
        rules = [(tirx.FloorMod, hide), (tirx.Mod, hide)]
        return [tvm_ffi.structural_map(index, rules, order="post") for index in node.indices]

    def load(node: TensorLoad) -> Expr:
        return tirx.BufferLoad(node.source, indices(node))

    def store(node: tirx.BufferStore) -> tirx.Stmt:
        return tirx.BufferStore(node.buffer, node.value, indices(node))

    return func.with_body(
        tvm_ffi.structural_map(func.body, [(TensorLoad, load), (tirx.BufferStore, store)], order="post")
    )


def _has_remainders(body: tirx.Stmt) -> bool:
    """Whether there is one by a power of 2, be it in an index or not."""
    found: list[bool] = []

    def visit(node: tirx.FloorMod | tirx.Mod) -> None:
        found.append(_is_power_of_two(node.b))

    tvm_ffi.structural_walk(body, ((tirx.FloorMod, tirx.Mod), visit), order="pre")
    return any(found)


def _is_power_of_two(divisor: Expr) -> bool:
    return isinstance(divisor, tirx.IntImm) and divisor.value > 1 and divisor.value & (divisor.value - 1) == 0


def _has_loops(body: tirx.Stmt) -> bool:
    """Whether there are loops within one, other than those that are to be vectors."""
    found: list[bool] = []
    tvm_ffi.structural_walk(body, (tirx.For, lambda n: found.append(n.kind != tirx.ForKind.VECTORIZED)), order="pre")
    return any(found)


def _instructions(body: tirx.Stmt) -> int:
    """How many there are in code whose loops are unrolled, at least: one for each store."""
    if isinstance(body, tirx.SeqStmt):
        return sum(map(_instructions, body.seq))
    if isinstance(body, tirx.IfThenElse):
        return max(_instructions(body.then_case), 0 if body.else_case is None else _instructions(body.else_case))
    if isinstance(body, tirx.For):
        unrolled = body.kind != tirx.ForKind.VECTORIZED and isinstance(body.extent, tirx.IntImm)
        return _instructions(body.body) * (int(body.extent) if unrolled else 1)
    if isinstance(body, tirx.BufferStore):
        return 1
    return _instructions(body.body) if hasattr(body, "body") else 0
