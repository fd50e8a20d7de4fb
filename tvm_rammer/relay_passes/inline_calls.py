"""Put functions into the place of calls that only stand for something, in the function "main" of a module."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import tvm
from tvm import relax
from tvm.ir import Call, GlobalVar

from .bindings import body_blocks, rebuild, typed


@dataclass(frozen=True, slots=True)
class Replacement:
    """What takes the place of a call.

    Parameters
    ----------
    function : relax.Function
        Its result has the type of the call.
    args : sequence of relax.Expr
        What it is called with.
    added : dict of str to relax.Function
        What it needs besides; becomes functions of the module.
    """

    function: relax.Function
    args: Sequence[relax.Expr]
    added: dict[str, relax.Function] = field(default_factory=dict)


def inline_calls(mod: tvm.IRModule, replacement: Callable[[relax.Expr, str], Replacement | None]) -> tvm.IRModule:
    """Replace calls in "main".

    Parameters
    ----------
    mod : tvm.IRModule
        Is not changed.
    replacement : callable
        Gets the value of a binding, and a name that no other replacement gets; returns None for a value that stays.
    """
    mod = mod.clone()
    functions: dict[GlobalVar, relax.Function] = {}
    blocks = []
    for block in body_blocks(mod["main"]):
        bindings = []
        for binding in block.bindings:
            name = f"inlined{len(functions)}"
            if (found := replacement(binding.value, name)) is not None:
                var = typed(GlobalVar(name), found.function.ty)
                functions[var] = found.function
                for key, func in found.added.items():
                    mod[key] = func
                binding = relax.VarBinding(binding.var, typed(Call(var, list(found.args)), binding.var.ty))
            bindings.append(binding)
        blocks.append((isinstance(block, relax.DataflowBlock), bindings))
    mod["main"] = rebuild(mod["main"], blocks).inline_functions(functions)
    return mod
