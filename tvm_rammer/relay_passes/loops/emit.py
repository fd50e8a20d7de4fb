"""The call of a loop, emitted into a Relax function, and what the rest of the function reads of its results."""

from collections.abc import Callable, Sequence

from tvm import relax, te, tirx
from tvm.ir import GlobalVar

from ...errors import LoopError
from ..bindings import body_blocks, dtype_of, result_of, static_shape, tensor_fields, typed
from .body import LoopBody, call_loop


def emit_loop(
    bb: relax.BlockBuilder, name: str, step: relax.Function, loop: LoopBody, args: list[relax.Expr]
) -> tuple[list[relax.Expr], list[relax.Expr]]:
    """Emit the call of all steps of a function.

    Parameters
    ----------
    bb : relax.BlockBuilder
    name : str
        Of the step in the module.
    step : relax.Function
    loop : LoopBody
    args : list of relax.Expr
        Initial states, arrays, and invariants; then the number of rows, where that says how many steps there are.

    Returns
    -------
    tuple of two lists of relax.Expr
        The last states; and what all steps wrote, along a new first axis each, or the one of several rows. In the place
        of the conditions the last one: whether there would be another step.

    Raises
    ------
    LoopError
        A result of the step has no static shape.
    """
    types = [
        _all_slots(ty, 2 if i < loop.rings else loop.steps, loop.rows)
        for i, ty in enumerate(tensor_fields(step.ret_ty) or ())
    ]
    call = bb.emit(call_loop(name, args, types))
    made = [bb.emit(relax.TupleGetItem(call, i)) for i in range(len(types))] if len(types) > 1 else [call]
    if not loop.conditional:
        return [_last(bb, made[field], field, loop, args[-1]) for field in loop.carried], made[loop.rings :]
    number = bb.emit_te(steps_done, made[-1], primfunc_name_hint="steps_done")
    lasts = [_last(bb, made[field], field, loop, number) for field in loop.carried]
    goes_on = bb.emit_te(_row_before, made[-1], number, primfunc_name_hint="goes_on")
    return lasts, [*made[loop.rings : -1], goes_on]


def _all_slots(ty: relax.TensorType, slots: int, rows: int) -> relax.TensorType:
    """The type of what holds so many results of steps."""
    shape = shape_within(ty)
    return relax.TensorType((slots * rows, *shape[1:]) if rows > 1 else (slots, *shape), dtype_of(ty))


def shape_within(ty: object) -> tuple[int, ...]:
    """The shape of what a loop works on.

    Raises
    ------
    LoopError
        It is not static, or has no elements.
    """
    shape = static_shape(ty)
    if shape is None or 0 in shape:
        raise LoopError(f"a loop over values of the type {ty}, which has no static shape, or no elements")
    return shape


def _last(bb: relax.BlockBuilder, result: relax.Expr, field: int, loop: LoopBody, number: relax.Expr) -> relax.Expr:
    """A state after the last step, where `number` says how many rows or steps there were if only run time knows."""
    ring = field < loop.rings
    backward = not ring and loop.writes[field - loop.rings]
    if loop.conditional and ring:
        return bb.emit_te(last_slot, result, number, primfunc_name_hint="last_slot")
    if (loop.rows or loop.conditional) and not ring and not backward:
        return bb.emit_te(_row_before, result, number, primfunc_name_hint="last_row")
    slot = loop.steps % 2 if ring else 0 if backward else loop.steps - 1
    part = relax.op.strided_slice(result, axes=[0], begin=[slot], end=[slot + 1], assume_inbound=True)
    return bb.emit(relax.op.squeeze(bb.emit(part), axis=[0]))


def _row_before(array: te.Tensor, number: te.Tensor) -> te.Tensor:
    """The row of an array that comes before the row of some number: the last one, where that is how many there are."""
    return te.compute(array.shape[1:], lambda *at: array[(number[0] - 1, *at)], name="last_row")


def last_slot(ring: te.Tensor, number: te.Tensor) -> te.Tensor:
    """What the last of so many steps wrote into one of two slots."""
    return te.compute(ring.shape[1:], lambda *at: ring[(number[0] & 1, *at)], name="last_slot")


def steps_done(condition: te.Tensor) -> te.Tensor:
    """How many steps there were, by the condition of each: up to the first that is false. Later ones hold anything."""
    steps = condition.shape[0]
    k = te.reduce_axis((0, steps), "k")
    none = tirx.const(int(steps), "int32")

    def ended(at: tirx.Var) -> tirx.Expr:
        return tirx.Select(condition[at], none, at.astype("int32") + 1)

    return te.compute((1,), lambda _: te.min(ended(k.var), axis=k), name="steps_done")


def with_copies(
    step: relax.Function, fields: Sequence[int], add: Callable[[tirx.PrimFunc], GlobalVar]
) -> relax.Function:
    """A step some of whose results are copies of what it hands on as it is given: it has to compute all of them.

    Parameters
    ----------
    step : relax.Function
    fields : sequence of int
        Which of its results.
    add : callable
        Adds a function to the module that the step is to be in.
    """
    result, types = result_of(step), tensor_fields(step.ret_ty) or []
    bindings: list[relax.Binding] = []

    def bind(name: str, value: relax.Expr, ty: relax.TensorType) -> relax.Var:
        bindings.append(relax.VarBinding(relax.Var(name, ty), typed(value, ty)))
        return bindings[-1].var

    values = list(result.fields) if isinstance(result, relax.Tuple) else [result]
    if isinstance(result.ty, relax.TupleType) and not isinstance(result, relax.Tuple):
        values = [bind(f"result{n}", relax.TupleGetItem(result, n), ty) for n, ty in enumerate(types)]
    for n in fields:
        call = relax.call_tir(add(_copying(types[n])), relax.Tuple([values[n]]), types[n])
        values[n] = bind(f"copy{n}", call, types[n])
    returned = typed(relax.Tuple(values), step.ret_ty) if len(values) > 1 else values[0]
    blocks = [*body_blocks(step), *([relax.BindingBlock(bindings)] if bindings else [])]
    body = typed(relax.SeqExpr(blocks, returned), step.ret_ty)
    return relax.Function(step.params, body, step.ret_ty, step.is_pure, step.attrs)


def _copying(ty: relax.TensorType) -> tirx.PrimFunc:
    """A function that copies a tensor."""
    array = te.placeholder(shape_within(ty), dtype_of(ty), "x")
    copy = te.compute(array.shape, lambda *at: array(*at), name="copy")
    return te.create_prim_func([array, copy]).without_attr("global_symbol")
