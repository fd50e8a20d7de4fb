"""Barriers within a warp, which TVM puts into its code, and does not print.

Threads add up what each has by shuffles; but for types that TVM does not shuffle, such as bfloat16 and integers of 8
bits. These go through shared memory, and the last threads, which may be one warp, are to wait for each other only:

    if (x < 2) {                                  if (x < 2) own[0] = part[x] + part[x + 2];
        own = part[x] + part[x + 2]; (warp)       barrier
        part[x] = own; (warp)                     if (x < 2) part[x] = own[0];
        own_1 = part[x] + part[x + 1]; (warp)     barrier
        part[x] = own_1; (warp)                   if (x < 2) own_1[0] = part[x] + part[x + 1];
    }                                             ...

Of "(warp)" TVM makes no code: it takes the threads of a warp to be in step, as no GPU since Volta promises. The
barriers here are of the block, and outside of the branch: the threads that take it need not be a whole warp.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.tirx.op import tvm_storage_sync

from .bodies import substituted

_SYNC, _WARP = "tirx.tvm_storage_sync", "warp"


def with_barriers_between_stages(body: tirx.Stmt) -> tirx.Stmt:
    """Put barriers between what the threads of a warp read and write of each other.

    Parameters
    ----------
    body : Stmt
        Of device code, as TVM has lowered it. Returned as it is where no threads of a warp wait for each other.
    """
    return tvm_ffi.structural_map(body, (tirx.IfThenElse, _in_stages), order="post")


def _in_stages(branch: tirx.IfThenElse) -> tirx.Stmt:
    parts = list(branch.then_case.seq) if isinstance(branch.then_case, tirx.SeqStmt) else []
    if branch.else_case is not None or not any(map(_is_warp_barrier, parts)):
        return branch
    arrays: list[tirx.Stmt] = []
    stages: list[list[tirx.Stmt]] = [[]]
    known: dict[tirx.Var, Expr] = {}
    for part in parts:
        if _is_warp_barrier(part):
            stages.append([])
        elif isinstance(part, tirx.Bind):  # a name of one branch is unknown in the next
            own = tirx.decl_buffer((1,), str(part.var.ty.dtype), part.var.name, scope="local")
            arrays.append(tirx.AllocBuffer(own))
            stages[-1].append(tirx.BufferStore(own, substituted(part.value, known), [0]))
            known[part.var] = own[0]
        else:
            stages[-1].append(substituted(part, known))
    made: list[tirx.Stmt] = []
    for stage in filter(None, stages):
        whole = stage[0] if len(stage) == 1 else tirx.SeqStmt(stage)
        barrier = [tirx.Evaluate(tvm_storage_sync("shared"))] if made else []
        made += [*barrier, tirx.IfThenElse(branch.condition, whole, None)]
    return tirx.SeqStmt([*arrays, *made])


def _is_warp_barrier(stmt: tirx.Stmt) -> bool:
    call = stmt.value if isinstance(stmt, tirx.Evaluate) else None
    return isinstance(call, Call) and getattr(call.op, "name", "") == _SYNC and call.args[0].value == _WARP
