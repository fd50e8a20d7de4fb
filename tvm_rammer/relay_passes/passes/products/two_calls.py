"""Put two calls in the place of one: partial results, and what becomes of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import GlobalVar

from ...bindings import is_call, rewrite_bindings, rewrite_functions, typed
from ...regions.values import unique


@dataclass(frozen=True, slots=True)
class TwoCalls:
    """Two functions that compute together what one does.

    Parameters
    ----------
    first, second : tirx.PrimFunc
        The second reads first what the first writes.
    first_inputs, second_inputs : sequence of int
        Which inputs of the function they read.
    """

    first: tirx.PrimFunc
    second: tirx.PrimFunc
    first_inputs: tuple[int, ...]
    second_inputs: tuple[int, ...]


def into_two_calls(mod: tvm.IRModule, functions: Mapping[str, TwoCalls]) -> tvm.IRModule:
    """Replace all calls of some functions.

    Parameters
    ----------
    mod : tvm.IRModule
        Prepared; is not changed.
    functions : mapping of str to TwoCalls
        By the name of the function that they replace.

    Returns
    -------
    tvm.IRModule
        The functions `NAME_parts` and `NAME_sum` take the place of `NAME`; where a name is taken, with a number.
    """
    if not functions:
        return mod
    mod = mod.clone()
    made: dict[str, tuple[GlobalVar, GlobalVar]] = {}
    taken = {var.name_hint: 0 for var in mod.get_global_vars()}
    for name, calls in functions.items():
        made[name] = GlobalVar(unique(f"{name}_parts", taken)), GlobalVar(unique(f"{name}_sum", taken))
        for var, func in zip(made[name], (calls.first, calls.second), strict=True):
            mod.update_func(typed(var, func.ty), func)
    mod = rewrite_functions(mod, partial(rewrite_bindings, rewrite=partial(_two, functions, made)))
    called: set[GlobalVar] = set()
    for _, func in mod.functions_items():
        tvm_ffi.structural_walk(func, [(GlobalVar, called.add)], order="pre")
    for name in functions:
        if (var := mod.get_global_var(name)) not in called:
            del mod[var]
    return mod


def _two(
    functions: Mapping[str, TwoCalls],
    made: Mapping[str, tuple[GlobalVar, GlobalVar]],
    binding: relax.Binding,
    make: type[relax.Var],
) -> list[relax.Binding] | None:
    call = binding.value
    name = call.args[0].name_hint if is_call(call, ("relax.call_tir",)) else ""
    if name not in functions:
        return None
    calls, (first, second) = functions[name], made[name]
    inputs = list(call.args[1].fields)
    between = calls.first.params[-1]
    ty = relax.TensorType([int(n) for n in between.shape], str(between.dtype))
    parts = make(f"{binding.var.name}_parts", ty)
    return [
        relax.VarBinding(parts, typed(_call(first, [inputs[n] for n in calls.first_inputs], ty), ty)),
        relax.VarBinding(
            binding.var, typed(_call(second, [parts, *(inputs[n] for n in calls.second_inputs)], call.ty), call.ty)
        ),
    ]


def _call(function: GlobalVar, inputs: list[relax.Expr], ty: object) -> relax.Expr:
    return relax.call_tir(function, relax.Tuple(inputs), ty)
