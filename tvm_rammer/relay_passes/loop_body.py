"""A loop in a Relax module: a function that is one step, and a call that stands for all of them.

The call is `call_dps_packed("rammer.loop.NAME", (initial states, arrays, invariants))`, where NAME is a function of the
module that has the attribute `LOOP`. Where the number of steps is known only at run time, one more argument is the
number of rows that there are, an int32. That function takes the states, the slice of each array that a step reads, and
the invariants, and returns what the step writes. TVM cannot run such a call: `regions` makes rPrograms of all of them.
"""

import json
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, Self, TypeVar

import tvm
import tvm_ffi
from tvm import relax, te, tirx
from tvm.ir import Call, GlobalVar

from ..errors import DataLoopError, LoopError
from .bindings import body_blocks, dtype_of, name_of_packed, result_of, static_shape, tensor_fields, typed

LOOP = "rammer.loop"
ROLLED_UP = "rammer.rolled_up"
"""An attribute of modules with loops of steps that the model has one by one."""

_CALL = "rammer.loop."

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True)
class LoopBody:
    """What the attribute says of a step.

    Parameters
    ----------
    steps : int
    rings : int
        How many results of the call, the first ones, hold a state in two slots that are written in turn: what step k
        writes is in slot (k + 1) % 2. All others hold what each step wrote, along their first axis.
    carried : tuple of int
        For each state the result of the call that it is read from, as the step before wrote it.
    reads, writes : tuple of bool
        For each array that is read, and for each result that is no ring, whether the steps go from its end to its
        beginning.
    rows : int
        Where the number of steps comes from the last argument of the call, how many rows a step does: as many the
        slices have along their first axis, or 1, and they are without that axis. There are at most `steps` steps then.
        0 where the number of steps is known.
    conditional : bool
        Whether the last result of a step says if there is another one. There are at most `steps` steps then.
    """

    steps: int
    rings: int
    carried: tuple[int, ...]
    reads: tuple[bool, ...]
    writes: tuple[bool, ...]
    rows: int = 0
    conditional: bool = False

    def text(self) -> str:
        """As the value of an attribute."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, func: relax.Function) -> Self | None:
        """What the attribute of a function says; None where it has none."""
        if not func.attrs or LOOP not in func.attrs:
            return None
        found = json.loads(str(func.attrs[LOOP]))
        lists = {key: tuple(found[key]) for key in ("carried", "reads", "writes")}
        return cls(found["steps"], found["rings"], **lists, rows=found["rows"], conditional=found["conditional"])


@dataclass(frozen=True, slots=True)
class StepResults(Generic[Value]):
    """What a step returns, each value once, although a state may be a result of each step, too.

    Parameters
    ----------
    values : tuple
        First the states that are no results of each step.
    rings : int
        How many of these there are.
    carried : tuple of int
        For each state which of the values it is.
    """

    values: tuple[Value, ...]
    rings: int
    carried: tuple[int, ...]

    @classmethod
    def of(cls, returned: Sequence[Value], states: int, given: Collection[Value]) -> Self:
        """Sort them.

        Parameters
        ----------
        returned : sequence
            The next states, then what the step adds to each result.
        states : int
            How many states there are.
        given : collection
            What no step computes.

        Raises
        ------
        LoopError
            One of them is given, or is two results.
        """
        written = returned[states:]
        own = [value for value in dict.fromkeys(returned[:states]) if value not in written]
        values = (*own, *written)
        if len(set(values)) < len(values) or not set(given).isdisjoint(values):
            raise LoopError("a loop that hands on a value which no step computes, or writes one twice")
        return cls(values, len(own), tuple(values.index(value) for value in returned[:states]))


def call_loop(name: str, args: list[relax.Expr], types: list[relax.TensorType]) -> Call:
    """The call of all steps of a function."""
    return relax.op.call_dps_packed(_CALL + name, relax.Tuple(args), types if len(types) > 1 else types[0])


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


def called_loop(value: relax.Expr) -> str | None:
    """The name of the function whose steps a call stands for; None for any other expression."""
    return name_of_packed(value, _CALL)


def is_rolled_up(mod: tvm.IRModule) -> bool:
    """Whether a module has loops of steps that the model has one by one."""
    return bool(mod.attrs and ROLLED_UP in mod.attrs)


def loop_bodies(mod: tvm.IRModule) -> dict[str, relax.Function]:
    """The functions of a module that are steps of loops."""
    return {
        var.name_hint: func
        for var, func in mod.functions_items()
        if isinstance(func, relax.Function) and LoopBody.of(func) is not None
    }


def steps_of_loops(mod: tvm.IRModule) -> list[int]:
    """How many steps each loop of a module has that could be unrolled: all but those that data end."""
    bodies = map(LoopBody.of, loop_bodies(mod).values())
    return [body.steps for body in bodies if body is not None and not body.conditional]


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


def loop_error(step: relax.Function, message: str) -> LoopError:
    """The error of a loop that cannot be one of an rProgram."""
    loop = LoopBody.of(step)
    return DataLoopError(message) if loop is not None and loop.conditional else LoopError(message)


def rename_loops(mod: tvm.IRModule, prefix: str) -> tvm.IRModule:
    """Give the loops of a module longer names, so that it can be joined with others."""
    steps = loop_bodies(mod)

    def renamed(function: relax.ExternFunc) -> relax.ExternFunc:
        name = str(function.global_symbol).removeprefix(_CALL)
        return relax.ExternFunc(_CALL + prefix + name) if name in steps else function

    longer = {}
    for var, func in mod.functions_items():
        if var.name_hint in steps:
            longer[prefix + var.name_hint] = func.with_attr("global_symbol", prefix + var.name_hint)
        elif isinstance(func, relax.Function):
            longer[var.name_hint] = tvm_ffi.structural_map(func, [(relax.ExternFunc, renamed)], order="post")
        else:
            longer[var.name_hint] = func
    return tvm.IRModule(longer, attrs=mod.attrs)
