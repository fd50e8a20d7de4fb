"""Scatters on a CPU: TVM's functions without its parallel loops, so that they are rOperators."""

import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar

from .stock import Legalization, stock


def scatters() -> dict[str, Legalization]:
    """Legalizations of scatters by the operator's name.

    TVM starts all of its threads for each loop, or for each row of updates, and waits for them: longer than the few
    elements take, and a time slice where another process has a core.
    """
    return {"relax.scatter_elements": _serial, "relax.scatter_nd": _serial}


def _serial(bb: relax.BlockBuilder, call: Call) -> relax.Expr:
    made = stock(bb, call)
    function = made.args[0] if isinstance(made, Call) and made.args else None
    func = bb.get()[function] if isinstance(function, GlobalVar) else None
    if isinstance(func, tirx.PrimFunc):
        bb.update_func(function, _plain(func))
    return made


def _plain(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """A function whose loops are serial, and whose buffers begin where they are given."""
    params = {param: tirx.decl_buffer(param.shape, str(param.dtype), param.name) for param in func.params}

    def serial(loop: tirx.For) -> tirx.For:
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)

    def without_pragma(attr: tirx.AttrStmt) -> tirx.Stmt:
        return attr.body if attr.attr_key.startswith("pragma") else attr

    body = tvm_ffi.structural_map(func.body, [(tirx.For, serial), (tirx.AttrStmt, without_pragma)], order="post")
    body = tvm_ffi.structural_map(body, (tirx.Var, lambda var: params.get(var, var)), order="post")
    return tirx.PrimFunc(list(params.values()), body, func.ret_type, func.attrs)
