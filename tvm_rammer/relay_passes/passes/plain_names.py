"""Names of functions that C and CUDA take: those of kernels are made of them.

TVM names a function `<lambda>` that `emit_te` makes of one, and a caller may write any hint.
"""

import re

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import GlobalVar

from ..bindings import rewrite_functions, typed
from ..module_pass import module_pass
from ..regions.values import unique


def PlainNames() -> tvm.transform.Pass:
    """Make the pass: private PrimFuncs whose names are no identifiers of ASCII letters get others, each its own."""
    return _plain_names


@module_pass("RammerPlainNames")
def _plain_names(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    taken = {var.name_hint: 0 for var in mod.get_global_vars()}
    names: dict[GlobalVar, GlobalVar] = {}
    for var, func in mod.functions_items():
        private = isinstance(func, tirx.PrimFunc) and "global_symbol" not in (func.attrs or {})
        if private and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", var.name_hint):
            begins = "" if re.match("[A-Za-z_]", var.name_hint) else "fn_"
            names[var] = typed(GlobalVar(unique(begins + var.name_hint, taken)), var.ty)
    if not names:
        return mod
    made = mod.clone()
    for old, new in names.items():
        del made[old]
        made.update_func(new, mod[old])
    calls = [(GlobalVar, lambda var: names.get(var, var))]
    return rewrite_functions(made, lambda func: _changed(func, tvm_ffi.structural_map(func, calls, order="post")))


def _changed(func: relax.Function, made: relax.Function) -> relax.Function | None:
    return None if made.same_as(func) else made
