"""Rounds of a Loop as steps of a loop within an rProgram, of which each says whether there is another one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import tvm
from tvm import relax
from tvm.ir import Constant

from .... import debug
from ....errors import LoopError
from ...bindings import add_function, body_blocks, is_call, result_of, static_shape, typed
from ...loops.body import LOOP, LoopBody, StepResults
from ...loops.emit import emit_loop, shape_within, with_copies
from .collect import append, held_rows, put

ROUNDS = 64
"""So many rounds a launch, at most: then what a launch costs is little beside what they take, and the condition of each
has its place."""

_STEP = "rounds"


def in_one_program(body: tvm.IRModule, num_states: int, most: int | None) -> tvm.IRModule | None:
    """Let the body of a Loop do more rounds than one.

    Parameters
    ----------
    body : tvm.IRModule
        "main" takes the number of a round, states and others, and returns whether to go on, the number of the next
        round, the states, and what the Loop collects.
    num_states : int
    most : int or None
        Rows of what is collected; None for any number of them.

    Returns
    -------
    tvm.IRModule or None
        The body as `functions.repeat` takes it: its states are also all rows of what is collected, and before these
        how many there are, if there may be at most so many. It does one round or more: up to the last one, or `ROUNDS`.
        None where rounds cannot be steps: they call other functions, hand on a constant or collect the condition.
    """
    try:
        return _several(body, num_states, most)
    except LoopError as error:
        debug.say(1, f"each round of a Loop is called: {error}")
        return None


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
    rows : list of relax.Expr
        What it adds to what is collected.
    """

    going: relax.Expr
    afters: dict[relax.Var, relax.Expr]
    states: list[relax.Var]
    rows: list[relax.Expr]

    @classmethod
    def of(cls, func: relax.Function, num_states: int) -> Self:
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
        states = list(func.params[: 1 + num_states])
        afters = {param: value for param, value in zip(states, values, strict=False) if not value.same_as(param)}
        return cls(going, afters, states, values[1 + num_states :])


def _several(body: tvm.IRModule, num_states: int, most: int | None) -> tvm.IRModule:
    """The body that does several rounds: its step, and a "main" that calls all of them and takes what they leave."""
    others = {var: func for var, func in body.functions_items() if var.name_hint != "main"}
    if called := [var.name_hint for var, func in others.items() if isinstance(func, relax.Function)]:
        raise LoopError(f"a round calls {called[0]}")
    main, each = body["main"], _Round.of(body["main"], num_states)
    params = [*each.afters, *(param for param in main.params if param not in each.afters)]
    for param in params:
        shape_within(param.ty)
    each, copies = _all_computed(each, params)
    rows = list(dict.fromkeys(each.rows))
    returned = [*each.afters.values(), *rows, each.going]
    results = StepResults.of(returned, len(each.afters), {value for value in returned if isinstance(value, Constant)})
    mod = tvm.IRModule(others)
    step = _step(main, params, [copies.get(value, value) for value in results.values])
    copied = [n for n, value in enumerate(results.values) if value in copies]
    step = with_copies(step, copied, lambda function: add_function(mod, "copy", function))
    writes = (False,) * (len(rows) + 1)
    loop = LoopBody(ROUNDS, results.rings, results.carried, (), writes, conditional=True)
    builder = relax.BlockBuilder(mod)
    own = {param: relax.Var(param.name, param.ty) for param in main.params}
    held = [held_rows(row.ty, most) for row in each.rows]
    count = [relax.Var("count", relax.TensorType((), "int64"))] if rows and most is not None else []
    states, read = ([own[param] for param in some] for some in (each.states, main.params[1 + num_states :]))
    with builder.function("main", [*states, *count, *held, *read]):
        lasts, made = emit_loop(builder, _STEP, step, loop, [own[param] for param in params])
        after = own | dict(zip(each.afters, lasts, strict=True))
        first, end = states[0], after[each.states[0]]
        done = builder.emit(relax.op.subtract(end, first))
        collected = [
            append(builder, all_rows, made[rows.index(row)], done)
            if most is None
            else put(builder, all_rows, made[rows.index(row)], first, end)
            for all_rows, row in zip(held, each.rows, strict=True)
        ]
        following = [*(after[state] for state in each.states), *([end] if count else [])]
        builder.emit_func_output(relax.Tuple([made[-1], *following, *collected]))
    module = builder.get()
    module[_STEP] = step.with_attr({"global_symbol": _STEP, LOOP: loop.text()})
    return module


def _all_computed(each: _Round, params: Sequence[relax.Var]) -> tuple[_Round, dict[relax.Var, relax.Var]]:
    """The round with copies of what it hands on, or collects, as it got it; and what they are copies of.

    A step computes all that it hands on. What is in two places is one copy.
    """
    copies: dict[relax.Var, relax.Var] = {}

    def own(value: relax.Expr) -> relax.Expr:
        if isinstance(value, Constant) or value not in params:
            return value
        return copies.setdefault(value, relax.Var(f"{value.name}_copy", value.ty))

    afters = {before: own(after) for before, after in each.afters.items()}
    made = replace(each, going=own(each.going), afters=afters, rows=[own(row) for row in each.rows])
    return made, {copy: value for value, copy in copies.items()}


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
