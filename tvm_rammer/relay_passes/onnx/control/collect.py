"""States of a Loop that grow: what it collects, of at most so many rows or any number, and those of any size."""

import tvm
from tvm import relax, te, tirx
from tvm.ir import Call

from ...bindings import dtype_of, static_shape, tensor_fields
from ...loops.emit import shape_within
from .functions import add_module, first_rows, fresh


def held_rows(row: relax.TensorType, most: int | None) -> relax.Var:
    """A parameter for all rows so far: places for so many of them, or as many as there are, if `most` is None."""
    shape = shape_within(row)
    if most is None:
        return relax.Var("rows", relax.TensorType(dtype=row.dtype, ndim=1 + len(shape)))
    return relax.Var("rows", relax.TensorType((most, *shape), row.dtype))


def put(
    builder: relax.BlockBuilder, held: relax.Var, rows: relax.Expr, first: relax.Expr, end: relax.Expr
) -> relax.Var:
    """Put rows into their places, from the first to the end."""
    return builder.emit_te(_with_rows, held, rows, first, end, primfunc_name_hint="collect")


def append(builder: relax.BlockBuilder, held: relax.Var, rows: relax.Expr, count: relax.Expr) -> relax.Var:
    """Append so many rows to those that there are."""
    row = shape_within(rows.ty)[1:]
    number = tirx.Var("before", "int64")
    named = builder.match_cast(held, relax.TensorType([number, *row], dtype_of(held.ty)))
    return builder.emit(relax.op.concat([named, first_rows(builder, rows, count)], axis=0))


def append_rows(body: tvm.IRModule, num_states: int) -> tvm.IRModule:
    """The body of a Loop that collects any number of rows: they are states, of which each round makes longer ones.

    Parameters
    ----------
    body, num_states
        As for `rounds.in_one_program`.
    """
    builder = relax.BlockBuilder()
    inner = add_module(builder, body, "round")
    main = body["main"]
    rows = (tensor_fields(main.ret_ty) or [])[2 + num_states :]
    held = [held_rows(row, None) for row in rows]
    params = fresh(main.params)
    with builder.function("main", [*params[: 1 + num_states], *held, *params[1 + num_states :]]):
        result = builder.emit(Call(inner, params))
        made = [builder.emit(relax.TupleGetItem(result, i)) for i in range(2 + num_states + len(rows))]
        one = relax.const(1, "int64")
        longer = [
            append(builder, all_rows, builder.emit(relax.op.expand_dims(row, 0)), one)
            for all_rows, row in zip(held, made[2 + num_states :], strict=True)
        ]
        builder.emit_func_output(relax.Tuple([*made[: 2 + num_states], *longer]))
    return builder.get()


def take_any_size(body: tvm.IRModule, num_states: int) -> tvm.IRModule:
    """The body of a Loop that may be called with states of other sizes in each round, as far as it names these.

    Parameters
    ----------
    body, num_states
        As for `rounds.in_one_program`.
    """
    params = fresh(body["main"].params)
    open_states = {at for at in range(1, 1 + num_states) if static_shape(params[at].ty) is None}
    if not open_states:
        return body
    builder = relax.BlockBuilder()
    inner = add_module(builder, body, "sized")
    given = list(params)
    for at in open_states:
        ty = params[at].ty
        given[at] = relax.Var(params[at].name, relax.TensorType(dtype=dtype_of(ty), ndim=len(ty.shape)))
    with builder.function("main", given):
        named = [builder.match_cast(given[at], p.ty) if at in open_states else p for at, p in enumerate(params)]
        builder.emit_func_output(builder.emit(Call(inner, named)))
    return builder.get()


def _with_rows(held: te.Tensor, rows: te.Tensor, first: te.Tensor, end: te.Tensor) -> te.Tensor:
    """Rows, of which those from the first to the end are others."""

    def row(i: tirx.Var, *at: tirx.Var) -> tirx.Expr:
        number = i.astype("int64")
        new = rows[(tirx.max(tirx.min(number - first(), rows.shape[0] - 1), 0), *at)]
        return tirx.Select(tirx.all(number >= first(), number < end()), new, held[(i, *at)])

    return te.compute(held.shape, row, name="collect")
