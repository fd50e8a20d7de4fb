"""Rounds of a Loop as steps of a loop within an rProgram, of which each says whether there is another one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import tvm
from tvm import relax
from tvm.ir import Constant

from .... import debug
from ....errors import LoopError
from ...bindings import body_blocks, is_call, result_of, static_shape, typed
from ...loop_body import LOOP, LoopBody, StepResults, emit_loop, shape_within

ROUNDS = 64
"""So many rounds a launch, at most: then what a launch costs is little beside what they take, and the condition of each
has its place."""

_STEP = "rounds"


def in_one_program(body: tvm.IRModule) -> tvm.IRModule:
    """Let the body of a Loop do more rounds than one.

    Parameters
    ----------
    body : tvm.IRModule
        As `functions.repeat` takes it: "main" takes the number of a round, states and others, and returns whether to go
        on, the number of the next round, and the states.

    Returns
    -------
    tvm.IRModule
        Its "main" does the same, after one round or more: up to the last one, or `ROUNDS`. The same module where the
        rounds cannot be steps: a round calls other functions, or hands on what it does not compute.
    """
    try:
        return _several(body)
    except LoopError as error:
        debug.say(1, f"each round of a Loop is called: {error}")
        return body


@dataclass(frozen=True)
class _Round:
    """The function of a round, taken apart.

    Parameters
    ----------
    going : relax.Expr
        Whether there is another round.
    afters : dict of relax.Var to relax.Expr
        What a round reads, and in its place hands on: the number of the round, and states.
    states : list of relax.Var
        The number of the round, and all states: those that stay what they are, too.
    """

    going: relax.Expr
    afters: dict[relax.Var, relax.Expr]
    states: list[relax.Var]

    @classmethod
    def of(cls, func: relax.Function) -> Self:
        """Take the function of a round apart."""
        bindings = [binding for block in body_blocks(func) for binding in block.bindings]
        bound = {each.var: each.value for each in bindings if isinstance(each, relax.VarBinding)}

        def source(expr: relax.Expr) -> relax.Expr:
            """What a value is another name of."""
            while (value := bound.get(expr)) is not None:
                if is_call(value, ("relax.reshape",)) and static_shape(value.ty) == static_shape(value.args[0].ty):
                    value = value.args[0]
                if not isinstance(value, relax.Var | relax.Tuple | Constant):
                    break
                expr = value
            return expr

        going, *values = map(source, source(result_of(func)).fields)
        states = list(func.params[: len(values)])
        afters = {param: value for param, value in zip(states, values, strict=True) if not value.same_as(param)}
        return cls(going, afters, states)


def _several(body: tvm.IRModule) -> tvm.IRModule:
    others = {var: func for var, func in body.functions_items() if var.name_hint != "main"}
    if called := [var.name_hint for var, func in others.items() if isinstance(func, relax.Function)]:
        raise LoopError(f"a round calls {called[0]}")
    main, each = body["main"], _Round.of(body["main"])
    params = [*each.afters, *(param for param in main.params if param not in each.afters)]
    for param in params:
        shape_within(param.ty)
    returned = [*each.afters.values(), each.going]
    given = {*params, *(value for value in returned if isinstance(value, Constant))}
    results = StepResults.of(returned, len(each.afters), given)
    step = _step(main, params, results.values)
    loop = LoopBody(ROUNDS, results.rings, results.carried, (), (False,), conditional=True)
    builder = relax.BlockBuilder(tvm.IRModule(others))
    own = {param: relax.Var(param.name, param.ty) for param in main.params}
    with builder.function("main", list(own.values())):
        lasts, (going,) = emit_loop(builder, _STEP, step, loop, [own[param] for param in params])
        after = own | dict(zip(each.afters, lasts, strict=True))
        builder.emit_func_output(relax.Tuple([going, *(after[state] for state in each.states)]))
    made = builder.get()
    made[_STEP] = step.with_attr({"global_symbol": _STEP, LOOP: loop.text()})
    return made


def _step(func: relax.Function, params: Sequence[relax.Var], values: Sequence[relax.Var]) -> relax.Function:
    """The function of a round with its parameters in another order, and with other results."""
    seen = {value: value for value in values}
    blocks = []
    for block in body_blocks(func):
        bindings = list(block.bindings)
        dataflow = isinstance(block, relax.DataflowBlock)
        for var in [binding.var for binding in bindings if binding.var in seen] if dataflow else []:
            seen[var] = relax.Var(var.name, var.ty)
            bindings.append(relax.VarBinding(seen[var], var))
        blocks.append(relax.DataflowBlock(bindings) if dataflow else relax.BindingBlock(bindings))
    ty = relax.TupleType([value.ty for value in values])
    body = typed(relax.SeqExpr(blocks, typed(relax.Tuple([seen[value] for value in values]), ty)), ty)
    return relax.Function(list(params), body, ty, True)
