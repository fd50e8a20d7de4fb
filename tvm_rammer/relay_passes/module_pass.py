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
        Whether a function stays as it is. What it calls stays in the module, too.
    inner : tvm.transform.Pass
    """

    @module_pass(f"Sparing{inner.info.name}")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        kept = {var: func for var, func in mod.functions_items() if isinstance(func, relax.Function) and spared(func)}
        made = inner(mod)
        if not kept:
            return made
        made = made.clone()
        for var in _with_callees(mod, list(kept)):
            if var in kept or var not in made.functions:
                made.update_func(var, mod[var])
        return made

    return run


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
