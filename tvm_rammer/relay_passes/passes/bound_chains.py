"""Bound how much fusion puts into one function.

What is fused is inlined where it is read, so a value that is read twice is there twice, and a chain of n squares is 2^n
products. And a kernel has exp, tanh, sigmoid and erf as arithmetic within a bound variable; TVM's passes visit what is
in one twice, so that a chain of n such functions in one kernel takes 2^n as long to compile.
"""

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar

from ..bindings import body_blocks, is_call, leaves, rebuild, typed
from ..module_pass import module_pass

MAX_NESTED = 2
"""Functions within one another: as in the cell of an LSTM, tanh of a sum of sigmoids."""

MAX_COPIES = 64
"""So often is a value in a function that only one of its operators reads from outside."""

OPAQUE = 8
"""TVM's `op_pattern` of what is never fused."""

_FUSES_WITH_PRODUCERS = (0, 1, 2)
"""Patterns of functions that are fused into what comes before: elementwise, with broadcasting, injective."""

_FUNCTIONS = frozenset(
    f"tirx.{name}"
    for name in ("exp", "exp2", "exp10", "tanh", "sigmoid", "erf", "pow", "log", "log2", "log10", "log1p")
)


def BoundChains() -> tvm.transform.Pass:
    """Make the pass; it comes after TVM's AnnotateTIROpPattern and before its FuseOps."""
    return _bound_chains


@module_pass("RammerBoundChains")
def _bound_chains(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    nested = {
        var: int(func.attrs.get("op_pattern", OPAQUE)) in _FUSES_WITH_PRODUCERS and _is_transcendental(func)
        for var, func in mod.functions_items()
        if isinstance(func, tirx.PrimFunc)
    }
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            changed = _bounded(made, func, nested)
            if changed is not None:
                made.update_func(var, changed)
    return made


def _is_transcendental(func: tirx.PrimFunc) -> bool:
    found: list[bool] = []
    tvm_ffi.structural_walk(
        func.body, [(Call, lambda call: found.append(getattr(call.op, "name", "") in _FUNCTIONS))], order="pre"
    )
    return any(found)


def _bounded(mod: tvm.IRModule, func: relax.Function, nested: Mapping[GlobalVar, bool]) -> relax.Function | None:
    """The function with calls of what is not fused where a chain gets too long; None where none does."""
    depth: dict[relax.Var, int] = {}
    copies: dict[relax.Var, int] = {}
    apart: dict[GlobalVar, GlobalVar] = {}
    blocks = []
    for block in body_blocks(func):
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            callee = binding.value.args[0] if is_call(binding.value, ("relax.call_tir",)) else None
            pattern = int(mod[callee].attrs.get("op_pattern", OPAQUE)) if callee in nested else OPAQUE
            read = [leaf for leaf in leaves(binding.value) if isinstance(leaf, relax.Var)]
            if pattern in _FUSES_WITH_PRODUCERS:
                depth[binding.var] = max((depth.get(var, 0) for var in read), default=0) + nested[callee]
                copies[binding.var] = max(1, sum(copies.get(var, 0) for var in read))
            if depth.get(binding.var, 0) > MAX_NESTED or copies.get(binding.var, 0) > MAX_COPIES:
                depth[binding.var] = copies[binding.var] = 0
                if callee not in apart:
                    apart[callee] = _never_fused(mod, callee)
                call = binding.value
                other = Call(call.op, [apart[callee], *call.args[1:]], call.attrs, call.ty_args, ret_ty=call.ty)
                binding = relax.VarBinding(binding.var, other)
            bindings.append(binding)
        blocks.append((isinstance(block, relax.DataflowBlock), bindings))
    return rebuild(func, blocks) if apart else None


def _never_fused(mod: tvm.IRModule, callee: GlobalVar) -> GlobalVar:
    """A copy of a function that is fused with nothing."""
    taken = {var.name_hint for var in mod.get_global_vars()}
    name = next(n for n in (f"{callee.name_hint}_apart{k}" for k in range(len(taken) + 1)) if n not in taken)
    func = mod[callee].with_attr("op_pattern", OPAQUE)
    var = GlobalVar(name)
    mod.update_func(typed(var, func.ty), func)
    return var
