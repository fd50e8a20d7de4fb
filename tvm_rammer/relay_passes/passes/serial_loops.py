"""Functions that TVM writes by hand, on a CPU without their parallel loops.

TVM starts all of its threads for each of these loops: in a scatter for each row of updates, in NonMaxSuppression for
each box that is kept. It waits for them longer than the few elements take, and a time slice where another process has a
core. A scatter without such loops is an rOperator.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx.buffer import BufferType

from ..bindings import rewrite_prim_funcs
from ..module_pass import module_pass

_BY_HAND = "pragma_scope"
"""The attribute that TVM's builder of loops leaves in such a function."""


def SerialLoops() -> tvm.transform.Pass:
    """Make the pass; it works on functions that nobody scheduled."""
    return _serial_loops


@module_pass("RammerSerialLoops")
def _serial_loops(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_prim_funcs(mod, lambda func: _serial(func) if _is_by_hand(func) else None)


def _is_by_hand(func: tirx.PrimFunc) -> bool:
    found: list[bool] = []
    tvm_ffi.structural_walk(func.body, (tirx.AttrStmt, lambda a: found.append(a.attr_key == _BY_HAND)), order="pre")
    return any(found)


def _serial(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """A function whose loops are serial, and whose buffers begin where they are given."""
    params = {
        param: tirx.decl_buffer(param.shape, str(param.dtype), param.name)
        for param in func.params
        if isinstance(param.ty, BufferType)
    }

    def serial(loop: tirx.For) -> tirx.For:
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)

    def without_pragma(attr: tirx.AttrStmt) -> tirx.Stmt:
        return attr.body if attr.attr_key == _BY_HAND else attr

    body = tvm_ffi.structural_map(func.body, [(tirx.For, serial), (tirx.AttrStmt, without_pragma)], order="post")
    body = tvm_ffi.structural_map(body, (tirx.Var, lambda var: params.get(var, var)), order="post")
    return tirx.PrimFunc([params.get(param, param) for param in func.params], body, func.ret_type, func.attrs)
