"""Barriers that TVM adds beside those of code that has all it needs.

TVM's pass looks at whole arrays: where the tiles of one step are read in one half of an array, and those of the next
are stored in the other, it sees a conflict, and adds a barrier to each step.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.tirx.op import tvm_storage_sync

_SYNC, _SCOPE = "tirx.tvm_storage_sync", "shared"


def own_barrier() -> tirx.Stmt:
    """All threads of a block meet, and see what others wrote to shared memory; the code has all of these it needs."""
    return tirx.Evaluate(tvm_storage_sync(_SCOPE, True))


def without_added_barriers(body: tirx.Stmt) -> tirx.Stmt:
    """Leave out what TVM has added, where the code has barriers of its own.

    Parameters
    ----------
    body : Stmt
        Of device code, after TVM's pass.
    """
    found: list[Call] = []
    tvm_ffi.structural_walk(body, [(Call, lambda call: found.append(call) if _is_own(call) else None)], order="pre")
    if not found:
        return body

    def without(statement: tirx.Evaluate) -> tirx.Stmt:
        call = statement.value
        added = isinstance(call, Call) and _is_barrier(call) and not _is_own(call)
        return tirx.Evaluate(tirx.IntImm("int32", 0)) if added else statement

    return tvm_ffi.structural_map(body, (tirx.Evaluate, without), order="post")


def _is_barrier(call: Call) -> bool:
    return getattr(call.op, "name", "") == _SYNC and call.args[0].value == _SCOPE


def _is_own(call: Call) -> bool:
    """TVM's calls, and its own schedules', have false in the second place, or nothing."""
    return _is_barrier(call) and len(call.args) > 1 and bool(call.args[1])
