"""Functions that refuse each call: an error at run time in the place of what could not be compiled."""

import tvm
from tvm import relax

from ...errors import DATA_MARK
from ..bindings import typed
from ..module_pass import module_pass
from .impure_calls import with_impure
from .indices.messages import literal

REFUSES = "rammer.refuses"
"""An attribute of a Relax function: why each call of it is refused. Until this pass it looks like any other."""


def RefuseCalls() -> tvm.transform.Pass:
    """Make the pass: each function with such an attribute begins with an error, and who calls it is impure."""
    return _refuse_calls


@module_pass("RammerRefuseCalls")
def _refuse_calls(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    made, refusing = mod.clone(), []
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and func.attrs and REFUSES in func.attrs:
            made.update_func(var, _refused(func, str(func.attrs[REFUSES])))
            refusing.append(var)
    return with_impure(made, refusing)


def _refused(func: relax.Function, reason: str) -> relax.Function:
    unit = relax.TupleType([])
    check = relax.op.assert_op(relax.const(False, "bool"), [], format=DATA_MARK + literal(reason))
    begin = relax.BindingBlock([relax.VarBinding(relax.Var("refused", unit), typed(check, unit))])
    body = typed(relax.SeqExpr([begin, *func.body.blocks], func.body.body), func.body.body.ty)
    return relax.Function(func.params, body, func.ret_ty, False, func.attrs).without_attr(REFUSES)
