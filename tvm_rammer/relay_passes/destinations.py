"""A function that writes its results where the caller wants them, behind the "main" that returns new tensors.

When its call_tirs are lowered, a function allocates its results like all other tensors. Those that it returns become
parameters of the function `INTO`; what remains of "main" allocates them and calls it.
"""

from collections.abc import Iterator, Mapping

import tvm
from tvm import relax
from tvm.ir import Call, GlobalVar, Tuple, TupleGetItem

from ..ir import DESTINATIONS, INTO
from .bindings import body_blocks, is_call, rebuild, result_of, static_shape, typed
from .module_pass import module_pass

Values = Mapping[relax.Var, relax.Expr]
"""What the Vars of a function are bound to."""


def OfferDestinations() -> tvm.transform.Pass:
    """Give a module the functions `ir.INTO` and `ir.DESTINATIONS` beside its "main".

    A result has a destination where it is a tensor of static shape that "main" itself allocates. It has none where it
    is an input or a constant, what a branch returns, or a tensor that is returned twice, the second time; and where
    some input has an open extent, as one without elements has. Where no result has one there is no `INTO`.
    """
    return _offer_destinations


@module_pass("OfferDestinations")
def _offer_destinations(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    main = next((var for var in mod.get_global_vars() if var.name_hint == "main"), None)
    if main is None or not isinstance(func := mod[main], relax.Function):
        return mod
    values = {binding.var: binding.value for block in body_blocks(func) for binding in block.bindings}
    results = list(_leaves(result_of(func), values))
    static = all(static_shape(param.ty) is not None for param in func.params)
    allocated = [var for var in dict.fromkeys(results) if static and _is_allocated(var, values)]
    mod = mod.clone()
    if allocated:
        into = _into(func, allocated)
        name = typed(GlobalVar(INTO), into.ty)
        mod.update_func(name, into)
        mod.update_func(main, _main(func, name, [values[var] for var in allocated]))
    found = [int(var in allocated and results.index(var) == n) for n, var in enumerate(results)]
    mod.update_func(GlobalVar(DESTINATIONS), _told(found))
    return mod


def _leaves(expr: relax.Expr, values: Values) -> Iterator[relax.Expr]:
    """The tensors that an expression stands for."""
    expr = _resolved(expr, values)
    if isinstance(expr, Tuple):
        for field in expr.fields:
            yield from _leaves(field, values)
    else:
        yield expr


def _resolved(expr: relax.Expr, values: Values) -> relax.Expr:
    """An expression without other names, and without fields of tuples whose parts are known."""
    while True:
        value = values.get(expr, expr) if isinstance(expr, relax.Var) else expr
        if isinstance(value, TupleGetItem):
            whole = _resolved(value.tuple_value, values)
            value = whole.fields[value.index] if isinstance(whole, Tuple) else value
        if value is expr or not isinstance(value, relax.Var | Tuple):
            return value if isinstance(value, Tuple) else expr
        expr = value


def _is_allocated(expr: relax.Expr, values: Values) -> bool:
    made = values.get(expr) if isinstance(expr, relax.Var) else None
    return made is not None and is_call(made, ("relax.builtin.alloc_tensor",)) and static_shape(expr.ty) is not None


def _into(func: relax.Function, destinations: list[relax.Var]) -> relax.Function:
    """The function with tensors that it allocates as parameters."""
    blocks = [
        (isinstance(block, relax.DataflowBlock), [b for b in block.bindings if b.var not in destinations])
        for block in body_blocks(func)
    ]
    params = [*func.params, *destinations]
    into = relax.Function(params, rebuild(func, blocks).body, func.ret_ty, func.is_pure, func.attrs)
    return into.without_attr("global_symbol")


def _main(func: relax.Function, into: GlobalVar, allocations: list[Call]) -> relax.Function:
    """A function that makes the tensors, and calls the other one."""
    params = [relax.Var(param.name, param.ty) for param in func.params]
    made = [relax.VarBinding(relax.Var(f"result_{n}", call.ty), call) for n, call in enumerate(allocations)]
    call = typed(Call(into, [*params, *(binding.var for binding in made)]), func.ret_ty)
    result = relax.Var("results", func.ret_ty)
    body = relax.SeqExpr([relax.BindingBlock([*made, relax.VarBinding(result, call)])], result)
    return relax.Function(params, typed(body, func.ret_ty), func.ret_ty, func.is_pure, func.attrs)


def _told(numbers: list[int]) -> relax.Function:
    """A function that returns a shape."""
    shape = relax.ShapeExpr(numbers)
    return relax.Function([], typed(relax.SeqExpr([], shape), shape.ty), shape.ty)
