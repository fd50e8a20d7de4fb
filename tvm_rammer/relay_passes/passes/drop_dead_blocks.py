"""Remove dead blocks from fused functions, such as the unused part of a split.

TVM keeps such blocks. A schedule would treat them as outputs, and a GPU would need a kernel for each.
"""

from collections import Counter

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, TensorLoad

from ..bindings import rewrite_prim_funcs, with_root_body
from ..module_pass import module_pass


def DropDeadBlocks() -> tvm.transform.Pass:
    """Make the pass; it leaves functions alone that are scheduled or not written in blocks."""
    return _drop_dead_blocks


@module_pass("RammerDropDeadBlocks")
def _drop_dead_blocks(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_prim_funcs(mod, _without_dead_blocks)


def _without_dead_blocks(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    """The function without loop nests whose local results are never loaded; None where there is none."""
    root = func.body.block if isinstance(func.body, s_tir.SBlockRealize) else None
    if root is None or not isinstance(root.body, tirx.SeqStmt):
        return None
    local, kept, dropped = set(root.alloc_buffers), list(root.body.seq), True
    while dropped:
        reads = Counter(b for stmt in kept for b in _loaded(stmt))
        dead = [s for s in kept if (made := _stored(s)) and made <= local and not any(reads[b] for b in made)]
        kept, dropped = [s for s in kept if s not in dead], bool(dead)
    if len(kept) == len(root.body.seq):
        return None
    used = {b for stmt in kept for b in _loaded(stmt) | _stored(stmt)}
    return with_root_body(func, kept, [b for b in root.alloc_buffers if b in used])


def _loaded(stmt: tirx.Stmt) -> set[tirx.Var]:
    """What a statement loads, save what it only adds to: a sum reads its own result."""
    found: set[tirx.Var] = set()
    tvm_ffi.structural_walk(stmt, [(TensorLoad, lambda load: found.add(load.source))], order="pre")
    return (found - _stored(stmt)) | _by_other_names(stmt)


def _by_other_names(stmt: tirx.Stmt) -> set[tirx.Var]:
    """What a statement has another name of, or an address: nobody sees there what it loads and stores."""
    found: set[tirx.Var] = set()

    def visit(node: s_tir.SBlock | Call) -> None:
        if isinstance(node, s_tir.SBlock):
            found.update(match.source.source for match in node.match_buffers)
        else:
            found.update(arg for arg in node.args if isinstance(arg, tirx.Var))

    tvm_ffi.structural_walk(stmt, [(s_tir.SBlock, visit), (Call, visit)], order="pre")
    return found


def _stored(stmt: tirx.Stmt) -> set[tirx.Var]:
    found: set[tirx.Var] = set()
    tvm_ffi.structural_walk(stmt, [(tirx.BufferStore, lambda store: found.add(store.buffer))], order="pre")
    return found
