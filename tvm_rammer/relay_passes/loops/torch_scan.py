"""PyTorch's `scan` in a Relax module: one call, which becomes a loop, or its steps, once shapes are known.

The call is `call_dps_packed("rammer.scan.NAME", (initial states, arrays, invariants))`, where NAME is a function of the
module that has the attribute `SCAN`, the number of states and that of arrays. It takes the states, the slice of each
array along its first axis, and the invariants, and returns the next states and what the step adds to each result.
"""

from collections.abc import Sequence

import tvm
from tvm import relax
from tvm.ir import Call, GlobalVar, Tuple

from ...errors import LongLoopError
from ..bindings import body_blocks, name_of_packed, result_of, tensor_fields, typed
from ..inline_calls import Replacement, inline_calls
from ..onnx.lower.recurrence.loops import FEWEST_ITERATIONS
from ..onnx.lower.recurrence.recurrent import MOST_STEPS
from .body import LOOP, LoopBody, StepResults
from .emit import emit_loop, shape_within

SCAN = "rammer.scan"
_CALL = "rammer.scan."


def call_scan(name: str, step: relax.Function, states: Sequence[relax.Expr], args: Sequence[relax.Expr]) -> Call:
    """The call of all steps of a function.

    Parameters
    ----------
    name : str
        Of the function in the module.
    step : relax.Function
    states : sequence of relax.Expr
        At the beginning.
    args : sequence of relax.Expr
        At least one array, and the invariants.
    """
    fields = tensor_fields(step.ret_ty) or []
    written = [relax.TensorType([args[0].ty.shape[0], *ty.shape], ty.dtype) for ty in fields[len(states) :]]
    types = [*fields[: len(states)], *written]
    return relax.op.call_dps_packed(_CALL + name, relax.Tuple([*states, *args]), types if len(types) > 1 else types[0])


def has_scans(mod: tvm.IRModule) -> bool:
    """Whether "main" has scans that are to be expanded."""
    return any(name_of_packed(binding.value, _CALL) for block in body_blocks(mod["main"]) for binding in block.bindings)


def expand_scans(mod: tvm.IRModule, *, loops: bool) -> tvm.IRModule:
    """Replace the scans of "main" by loops, or by their steps.

    Parameters
    ----------
    mod : tvm.IRModule
        Of static shapes; is not changed.
    loops : bool
        Whether they become loops, but for short ones; otherwise all are unrolled.

    Raises
    ------
    LoopError
        One cannot be a loop.
    LongLoopError
        One is too long to be unrolled.
    """
    if not has_scans(mod):
        return mod

    def replacement(value: relax.Expr, name: str) -> Replacement | None:
        if (called := name_of_packed(value, _CALL)) is None:
            return None
        step, args = mod[called], list(value.args[1].fields)
        states, arrays = map(int, str(step.attrs[SCAN]).split())
        count = shape_within(args[states].ty)[0]
        body = step.without_attr(SCAN)
        if loops and count >= FEWEST_ITERATIONS:
            return _as_loop(f"{name}_{called}", body, args, (states, arrays, count))
        if count > MOST_STEPS:
            raise LongLoopError(
                f"a scan has {count} steps, of which {MOST_STEPS} are unrolled; give a shorter sequence"
            )
        return Replacement(_unrolled(body, args, (states, arrays, count)), args)

    expanded = inline_calls(mod, replacement)
    for var, func in mod.functions_items():
        if func.attrs and SCAN in func.attrs:
            del expanded[expanded.get_global_var(var.name_hint)]
    return expanded


def _as_loop(name: str, body: relax.Function, args: Sequence[relax.Expr], sizes: tuple[int, int, int]) -> Replacement:
    """The scan as a loop of the module."""
    states, arrays, count = sizes
    results = StepResults.of(list(result_of(body).fields), states, list(body.params))
    fields = results.values
    writes = (False,) * (len(fields) - results.rings)
    loop = LoopBody(count, results.rings, results.carried, (False,) * arrays, writes)
    result = _values(fields)
    ty = relax.TupleType([field.ty for field in fields]) if len(fields) > 1 else fields[0].ty
    step = relax.Function(body.params, typed(relax.SeqExpr(body.body.blocks, typed(result, ty)), ty), ty)
    step = step.with_attr({"global_symbol": name, LOOP: loop.text()})
    bb, params = relax.BlockBuilder(), _fresh(args)
    with bb.function("scan", params):
        with bb.dataflow():
            lasts, every = emit_loop(bb, name, step, loop, list(params))
            made = bb.emit_output(_values([*lasts, *every]))
        bb.emit_func_output(made)
    return Replacement(bb.get()["scan"].without_attr("global_symbol"), args, {name: step})


def _unrolled(body: relax.Function, args: Sequence[relax.Expr], sizes: tuple[int, int, int]) -> relax.Function:
    """The scan step by step."""
    states, arrays, count = sizes
    bb, params, step = relax.BlockBuilder(), _fresh(args), typed(GlobalVar("step"), body.ty)
    now, invariants = list(params[:states]), params[states + arrays :]
    rows: list[list[relax.Expr]] = []
    with bb.function("scan", params):
        with bb.dataflow():
            for k in range(count):
                slices = [bb.emit(_row(bb, array, k)) for array in params[states : states + arrays]]
                made = bb.emit(Call(step, [*now, *slices, *invariants]))
                values = [bb.emit(relax.TupleGetItem(made, i)) for i in range(len(result_of(body).fields))]
                now = values[:states]
                rows.append([bb.emit(relax.op.expand_dims(value, 0)) for value in values[states:]])
            every = [bb.emit(relax.op.concat(list(some), axis=0)) for some in zip(*rows, strict=True)]
            results = bb.emit_output(_values([*now, *every]))
        bb.emit_func_output(results)
    return bb.get()["scan"].without_attr("global_symbol").inline_functions({step: body})


def _row(bb: relax.BlockBuilder, array: relax.Expr, k: int) -> relax.Expr:
    part = relax.op.strided_slice(array, axes=[0], begin=[k], end=[k + 1], assume_inbound=True)
    return relax.op.squeeze(bb.emit(part), axis=[0])


def _fresh(args: Sequence[relax.Expr]) -> list[relax.Var]:
    return [relax.Var(f"arg{i}", arg.ty) for i, arg in enumerate(args)]


def _values(values: Sequence[relax.Expr]) -> relax.Expr:
    return values[0] if len(values) == 1 else Tuple(list(values))
