"""TVM's decorator for module passes, with types; and passes that leave some functions alone."""

from collections.abc import Callable

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import GlobalVar

Rewrite = Callable[[tvm.IRModule, tvm.transform.PassContext], tvm.IRModule]


def module_pass(name: str) -> Callable[[Rewrite], tvm.transform.Pass]:
    """Decorate a function of a module and a pass context: it becomes a pass of this name, at optimization level 0."""

    def decorate(rewrite: Rewrite) -> tvm.transform.Pass:
        return tvm.transform.module_pass(rewrite, opt_level=0, name=name)

    return decorate


def sparing(spared: Callable[[relax.Function], bool], inner: tvm.transform.Pass) -> tvm.transform.Pass:
    """Make a pass that changes each Relax function by itself leave some of them as they are.

    Parameters
    ----------
    spared : callable
        Whether a function stays as it is: `inner` does not see what is in it. What it calls stays in the module, too.
    inner : tvm.transform.Pass
    """

    @module_pass(f"Sparing{inner.info.name}")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        kept = {var: func for var, func in mod.functions_items() if isinstance(func, relax.Function) and spared(func)}
        if not kept:
            return inner(mod)
        hidden = mod.clone()
        for var, func in kept.items():
            hidden.update_func(var, _stand_in(func))
        made = inner(hidden).clone()
        for var in _with_callees(mod, list(kept)):
            if var in kept or var not in made.functions:
                made.update_func(var, mod[var])
        return made

    return run


def _stand_in(func: relax.Function) -> relax.Function:
    """A function of the same type that hides another one: some passes fail on what they need not change."""
    result = relax.Var("result", func.ret_ty)
    call = relax.Call(relax.ExternFunc("rammer.hidden"), list(func.params), ty_args=[func.ret_ty])
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(result, call)])], result)
    made = relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs)
    return made.with_attr("relax.force_pure", True) if func.is_pure else made


def _with_callees(mod: tvm.IRModule, functions: list[GlobalVar]) -> list[GlobalVar]:
    """Functions, and all functions of the module that they call, directly or not."""
    found = dict.fromkeys(functions)
    todo = list(functions)
    while todo:
        called: list[GlobalVar] = []
        tvm_ffi.structural_walk(mod[todo.pop()], [(GlobalVar, called.append)], order="pre")
        new = [var for var in dict.fromkeys(called) if var in mod.functions and var not in found]
        found |= dict.fromkeys(new)
        todo += new
    return list(found)
