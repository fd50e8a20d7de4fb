"""Functions of numbers as arithmetic, in what stock TVM computes on a CPU."""

import tvm

from ....vector_math import vector_math
from ...bindings import rewrite_prim_funcs
from ...module_pass import module_pass


def Formulas() -> tvm.transform.Pass:
    """Make the pass; it works on functions that nobody scheduled."""
    return _formulas


@module_pass("Formulas")
def _formulas(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    def rewritten(func: tvm.tirx.PrimFunc) -> tvm.tirx.PrimFunc | None:
        if "tirx.is_scheduled" in (func.attrs or {}):
            return None
        made = vector_math(func)
        return None if made.body.same_as(func.body) else made

    return rewrite_prim_funcs(mod, rewritten)
