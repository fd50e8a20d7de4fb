"""Steps of loops that look at indices: what they find is one more state of the loop, and read behind it.

A step of a loop is rOperators and nothing else, so it cannot end in a branch that raises an error. It hands on a number
for each place that is looked at: more than 0 as soon as an index was outside in any step.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import tvm
from tvm import relax, te
from tvm.ir import GlobalVar

from ...bindings import add_function, body_blocks, dtype_of, static_shape, tensor_fields, typed
from ...loops.body import LOOP, LoopBody, call_loop, called_loop
from ...loops.emit import last_slot, steps_done

NUMBER = relax.TensorType((), "int32")
"""The type of what a step hands on for each place."""


def hands_on(step: relax.Function, before: Sequence[relax.Var], after: Sequence[relax.Var]) -> relax.Function:
    """Add states to a step.

    Parameters
    ----------
    step : relax.Function
        With the attribute `LOOP`, whose body computes `after` already.
    before, after : sequence of relax.Var
        What it reads of each new state, and what it hands on: of the type `NUMBER`.
    """
    loop = LoopBody.of(step)
    assert loop is not None
    states, new = len(loop.carried), len(after)
    blocks, result = body_blocks(step), step.body.body
    fields = list(result.fields) if isinstance(result, relax.Tuple) else [result]
    if isinstance(result.ty, relax.TupleType) and not isinstance(result, relax.Tuple):
        fields = [relax.Var(f"{result.name}_{i}", ty) for i, ty in enumerate(result.ty.fields)]
        taken = [
            relax.VarBinding(field, typed(relax.TupleGetItem(result, i), field.ty)) for i, field in enumerate(fields)
        ]
        blocks = [*blocks, relax.BindingBlock(taken)]
    fields[loop.rings : loop.rings] = after
    returned = relax.TupleType([field.ty for field in fields])
    body = typed(relax.SeqExpr(blocks, typed(relax.Tuple(fields), returned)), returned)
    params = [*step.params[:states], *before, *step.params[states:]]
    carried = tuple(field if field < loop.rings else field + new for field in loop.carried)
    longer = replace(loop, rings=loop.rings + new, carried=carried + tuple(range(loop.rings, loop.rings + new)))
    return relax.Function(params, body, returned, step.is_pure, step.attrs).with_attr(LOOP, longer.text())


def behind_loop(
    mod: tvm.IRModule, binding: relax.VarBinding, step: relax.Function, new: int, dataflow: bool
) -> tuple[list[relax.Binding], list[relax.Var]]:
    """The call of a loop whose step has states more than the call knows of.

    Parameters
    ----------
    mod : tvm.IRModule
        Gets the functions that find what the last step handed on.
    binding : relax.VarBinding
        Of the call.
    step : relax.Function
        As `hands_on` made it.
    new : int
        How many states were added.
    dataflow : bool
        Whether the binding is in a dataflow block.

    Returns
    -------
    tuple of (list of relax.Binding, list of relax.Var)
        What takes the place of the binding, and the new states after the last step.
    """
    loop, call = LoopBody.of(step), binding.value
    assert loop is not None
    make = relax.DataflowVar if dataflow else relax.Var
    states, old = len(loop.carried) - new, tensor_fields(binding.var.ty) or []
    given = list(call.args[1].fields)
    given[states:states] = [relax.const(np.array(0, "int32"), "int32")] * new
    at = loop.rings - new
    types = [*old[:at], *[relax.TensorType((2,), "int32")] * new, *old[at:]]
    everything = make(f"{binding.var.name}_checked", relax.TupleType(types))
    bindings: list[relax.Binding] = [
        relax.VarBinding(everything, typed(call_loop(called_loop(call) or "", given, types), everything.ty))
    ]

    def add(name: str, value: relax.Expr, ty: relax.Type) -> relax.Var:
        bindings.append(relax.VarBinding(make(name, ty), typed(value, ty)))
        return bindings[-1].var

    fields = [add(f"{everything.name}_{i}", relax.TupleGetItem(everything, i), ty) for i, ty in enumerate(types)]
    results, rings = [*fields[:at], *fields[at + new :]], fields[at : at + new]
    whole = results[0] if len(results) == 1 else relax.Tuple(results)
    bindings.append(relax.VarBinding(binding.var, typed(whole, binding.var.ty)))
    done: relax.Expr = relax.const(np.array([loop.steps], "int32"), "int32")
    if loop.conditional:
        number = _call(mod, steps_done, [fields[-1]], relax.TensorType((1,), "int32"))
        done = add(f"{everything.name}_steps", number, number.ty)
    lasts = [add(f"{ring.name}_any", _call(mod, last_slot, [ring, done], NUMBER), NUMBER) for ring in rings]
    return bindings, lasts


def _call(
    mod: tvm.IRModule, compute: Callable[..., te.Tensor], args: Sequence[relax.Expr], ty: relax.TensorType
) -> relax.Expr:
    """The call of a new function of the module."""
    given = [te.placeholder(static_shape(arg.ty), dtype_of(arg.ty), f"x{i}") for i, arg in enumerate(args)]
    func = te.create_prim_func([*given, compute(*given)]).without_attr("global_symbol")
    added = add_function(mod, compute.__name__, func)
    return typed(relax.call_tir(added, relax.Tuple(args), ty), ty)


def counts_rows(step: relax.Function) -> bool:
    """Whether the last step of a loop may go beyond the rows that there are: what it finds there is nothing."""
    loop = LoopBody.of(step)
    return loop is not None and loop.rows > 1


def loops_first(mod: tvm.IRModule) -> list[tuple[GlobalVar, relax.Function]]:
    """The Relax functions of a module, steps of loops before the others, which call them."""
    functions = [(var, func) for var, func in mod.functions_items() if isinstance(func, relax.Function)]
    return sorted(functions, key=lambda item: LoopBody.of(item[1]) is None)
