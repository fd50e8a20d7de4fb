"""Relax functions that decide at run time which others are called."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, te, tirx
from tvm.ir import Call, GlobalVar

from ...bindings import sizes_of, static_shape, tensor_fields
from ...loops.body import loop_bodies, rename_loops
from ...passes.bound_chains import OPAQUE
from ...passes.refuse_calls import REFUSES

GROWS = "rammer.grows"
"""Attribute of the functions that call a round after another whose states have other sizes then."""

LEVELS = 40
"""A Loop runs at most 2^40 times, which takes longer than anyone waits."""


def add_module(builder: relax.BlockBuilder, mod: tvm.IRModule, name: str) -> GlobalVar:
    """Add the functions of a module to one that is being built.

    Parameters
    ----------
    builder : relax.BlockBuilder
    mod : tvm.IRModule
        With a function "main".
    name : str
        What "main" is called there; part of the names of the others.

    Returns
    -------
    GlobalVar
        "main" in the other module, of which it is a private function.
    """
    mod = rename_loops(mod, f"{name}_")
    steps = loop_bodies(mod)
    functions = {var.name_hint: _private(func) for var, func in mod.functions_items()} | steps
    names = {old: f"{name}_{old}" for old in functions} | {step: step for step in steps} | {"main": name}
    added = {old: builder.add_func(func, names[old]) for old, func in functions.items()}

    def renamed(var: GlobalVar) -> GlobalVar:
        return added.get(var.name_hint, var)

    for old, func in functions.items():
        if isinstance(func, relax.Function):
            builder.update_func(added[old], tvm_ffi.structural_map(func, [(GlobalVar, renamed)], order="post"))
    return added["main"]


def choose(then: tvm.IRModule, other: tvm.IRModule) -> tvm.IRModule:
    """An If: a module whose "main" takes a condition, and what both branches take.

    Parameters
    ----------
    then, other : tvm.IRModule
        Their "main" functions have the same parameters and the same result.
    """
    builder = relax.BlockBuilder()
    branches = [add_module(builder, mod, name) for mod, name in ((then, "then"), (other, "else"))]
    condition = _condition()
    params = fresh(then["main"].params)
    with builder.function("main", [condition, *params]):
        taken, left = (_sequence(Call(branch, params)) for branch in branches)
        builder.emit_func_output(builder.emit(relax.If(condition, taken, left)))
    return builder.get()


def refuse(like: tvm.IRModule, reason: str) -> tvm.IRModule:
    """A module whose "main" is called as another's, and refuses each call.

    Parameters
    ----------
    like : tvm.IRModule
        Its "main" has the same parameters, and the same results, but for sizes that only the data say.
    reason : str
        What the error says.
    """
    builder = relax.BlockBuilder()
    params = fresh(like["main"].params)
    with builder.function("main", params, {REFUSES: reason}):
        fields = tensor_fields(like["main"].ret_ty) or []
        shapes = [[size or 0 for size in sizes_of(field) or ()] for field in fields]
        results = [builder.emit(relax.op.zeros(s, f.dtype)) for s, f in zip(shapes, fields, strict=True)]
        builder.emit_func_output(_tuple(results))
    return builder.get()


def repeat(body: tvm.IRModule, num_states: int, *, grows: bool) -> tvm.IRModule:
    """A Loop: a module whose "main" takes a condition, the number of the first round, states, and what else it reads.

    A function of level n calls that of level n - 1, and once more if the loop goes on: so it calls the body up to 2^n
    times. The body is called first, and where the loop goes on the function of level 1, then that of level 2, and so
    on: a loop of few rounds costs few calls, no function calls itself, and the virtual machine's stack stays as deep as
    there are levels.

    Parameters
    ----------
    body : tvm.IRModule
        "main" takes the number of a round (int64, no axes), states and others, and returns a tuple: whether to go on,
        the number of the next round, and the states. It does one round, or several.
    num_states : int
    grows : bool
        Whether a round changes the sizes of states.

    Returns
    -------
    tvm.IRModule
        "main" returns the states: a tensor, or a tuple of several.
    """
    builder = relax.BlockBuilder()
    params = body["main"].params
    attributes = {GROWS: True} if grows else None
    levels = [add_module(builder, body, "body")]
    for number in range(1, LEVELS + 1):
        levels.append(_then(builder, levels[-1], levels[-1], f"twice{number}", params, num_states, attributes))
    rounds = levels[-1]
    for number in reversed(range(LEVELS)):
        rounds = _then(builder, levels[number], rounds, f"rounds{number}", params, num_states, attributes)
    rounds = _states_of(builder, rounds, params, num_states)
    condition, params = _condition(), fresh(params)
    with builder.function("main", [condition, *params]):
        none = _sequence(_tuple(params[1 : 1 + num_states]))
        builder.emit_func_output(builder.emit(relax.If(condition, _sequence(Call(rounds, params)), none)))
    return builder.get()


def has_growing_loops(mod: tvm.IRModule) -> bool:
    """Whether a module has a loop whose states have other sizes from round to round."""
    return any(GROWS in (func.attrs or {}) for func in mod.functions.values())


def first_rows(builder: relax.BlockBuilder, rows: relax.Expr, count: relax.Expr) -> relax.Expr:
    """So many rows of a tensor, whose other axes are static; how many is known when it runs."""
    rest = [int(extent) for extent in list(rows.ty.shape)[1:]]
    sizes = [builder.emit(relax.op.reshape(count, (1,))), relax.const(np.array(rest, np.int64), "int64")]
    shape = builder.emit(relax.op.tensor_to_shape(builder.emit(relax.op.concat(sizes))))
    number = tirx.Var("rows", "int64")
    builder.match_cast(shape, relax.ShapeType([number, *rest]))
    # TVM's own slice, once legalized, has another name for this size, which its later passes take for this one. And its
    # fusion would put a function that it fuses before the binding that says what this size is.
    attributes = {"op_pattern": OPAQUE}

    def taken(x: Any) -> Any:
        return te.compute((number, *rest), lambda *at: x(*at), name="first_rows")

    return builder.emit_te(taken, rows, primfunc_name_hint="first_rows", primfunc_attrs=attributes)


def _then(
    builder: relax.BlockBuilder,
    one: GlobalVar,
    other: GlobalVar,
    name: str,
    params: Sequence[relax.Var],
    num_states: int,
    attributes: dict[str, bool] | None,
) -> GlobalVar:
    """A function that calls one, and then another one if that says to go on."""
    given = fresh(params)
    others = given[1 + num_states :]
    with builder.function(name, given, attributes, private=True):
        first = builder.emit(Call(one, given))
        goes_on = builder.emit(relax.TupleGetItem(first, 0))
        moved = [builder.emit(relax.TupleGetItem(first, number)) for number in range(1, 2 + num_states)]
        again = _sequence(Call(other, [*moved, *others]))
        builder.emit_func_output(builder.emit(relax.If(goes_on, again, _sequence(first))))
    return builder.get().get_global_var(name)


def _states_of(
    builder: relax.BlockBuilder, level: GlobalVar, params: Sequence[relax.Var], num_states: int
) -> GlobalVar:
    """A function that calls another, and returns nothing but the states."""
    given = fresh(params)
    with builder.function("rounds", given, private=True):
        result = builder.emit(Call(level, given))
        states = [builder.emit(relax.TupleGetItem(result, 2 + number)) for number in range(num_states)]
        builder.emit_func_output(_tuple(states))
    return builder.get().get_global_var("rounds")


def _tuple(values: Sequence[relax.Var]) -> relax.Expr:
    return values[0] if len(values) == 1 else relax.Tuple(list(values))


def _sequence(result: relax.Expr) -> relax.SeqExpr:
    """What a branch of an If has to be."""
    return relax.SeqExpr([], result)


def _private(func: tvm.ir.BaseFunc) -> tvm.ir.BaseFunc:
    return func.without_attr("global_symbol") if func.attrs and "global_symbol" in func.attrs else func


def fresh(params: Sequence[relax.Var]) -> list[relax.Var]:
    """Parameters like others, with names of their own for sizes: each belongs to one function."""
    sizes: dict[relax.Var, tirx.Var] = {}

    def renamed(ty: relax.Type) -> relax.Type:
        if not isinstance(ty, relax.TensorType) or static_shape(ty) is not None or ty.shape is None:
            return ty
        names = [size for size in ty.shape if isinstance(size, tirx.Var)]
        sizes.update({size: tirx.Var(size.name, "int64") for size in names if size not in sizes})
        return relax.TensorType([sizes.get(size, size) for size in ty.shape], ty.dtype)

    return [relax.Var(param.name, renamed(param.ty)) for param in params]


def _condition() -> relax.Var:
    return relax.Var("condition", relax.TensorType((), "bool"))
