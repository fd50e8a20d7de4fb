"""Indices that are computed at run time: kept inside of the tensors they index, and reported where they were not.

TVM's gathers and scatters trust their indices, and read or write wherever these point. Here each index is clipped
before it is used, so memory is safe whatever the data say. Beside it a flag tells whether any index was outside; at the
end of the function a branch raises an error that names the operator. Who calls such a function is no longer pure
(`impure_calls`). A step of a loop hands its flags on, and who calls the loop has the branch (`loop_steps`). A model
without such an index costs nothing.

Where sizes are known at run time only, the operator is no rOperator, and a function looks at the indices before
(`index_guard`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.ir import Call, GlobalVar

from ....errors import DATA_MARK, ModelError
from ...bindings import add_function, body_blocks, drop_unused, dtype_of, is_const, static_shape, typed
from ...loops.body import LoopBody, called_loop
from ...module_pass import module_pass
from ..impure_calls import with_impure
from .among import Among
from .index_guard import GuardKind, index_guard
from .loop_steps import NUMBER, behind_loop, counts_rows, hands_on, loops_first
from .messages import operator_of, origin
from .ranges import Range, Ranges
from .uses import Use, takes_indices, uses_of


def CheckIndices() -> tvm.transform.Pass:
    """Make the pass; it works on Relax operators, so it comes before they are legalized."""
    return _check_indices


@module_pass("RammerCheckIndices")
def _check_indices(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    made, raising = mod.clone(), []
    steps: dict[str, CheckedStep] = {}
    for var, func in loops_first(mod):
        if isinstance(func.body, relax.SeqExpr):
            checked = _Function(made, func, steps).checked()
            if checked is not None:
                made.update_func(var, checked)
                raising += [var] if func.is_pure and not checked.is_pure else []
    return with_impure(made, raising)


@dataclass(frozen=True)
class CheckedStep:
    """A step of a loop that hands on what it found: it has a state for each check, and each has a message."""

    step: relax.Function
    messages: tuple[str, ...]


class _Function:
    """Rewrites one function.

    Parameters
    ----------
    mod : tvm.IRModule
        Gets the functions that look for indices outside.
    func : relax.Function
    steps : dict of str to CheckedStep
        Of the loops that it may call, by their names; a step that is rewritten is added.
    """

    def __init__(self, mod: tvm.IRModule, func: relax.Function, steps: dict[str, CheckedStep]) -> None:
        self._mod, self._func, self._steps = mod, func, steps
        self._is_step = LoopBody.of(func) is not None and not counts_rows(func)
        self._states: list[relax.Var] = []
        self._flags: list[tuple[relax.Var, str]] = []
        self._clipped: dict[tuple[relax.Expr, Use], relax.Expr] = {}
        self._named: dict[relax.Var, relax.Var] = {}
        self._operands: dict[relax.Expr, relax.Expr] = {}
        self._functions: dict[object, GlobalVar] = {}
        self._ranges = Ranges()
        self._is_simpler = False

    def checked(self) -> relax.Function | None:
        """The function with checks; None where it has no index that only run time knows, or simpler ones."""
        blocks = []
        for block in body_blocks(self._func):
            dataflow = isinstance(block, relax.DataflowBlock)
            bindings: list[relax.Binding] = []
            self._clipped, self._named = {}, {}  # what a dataflow block computes, no other block knows
            for binding in block.bindings:
                bindings += self._rewritten(binding, dataflow)
                self._ranges.add(binding)
            blocks.append(relax.DataflowBlock(bindings) if dataflow else relax.BindingBlock(bindings))
        if not self._functions and not self._flags and not self._is_simpler:
            return None
        raises = bool(self._flags) and not self._is_step
        if raises:
            blocks += self._report()
        result = self._func.body.body
        body = typed(relax.SeqExpr(blocks, result), result.ty)
        pure = self._func.is_pure and not raises
        checked = relax.Function(self._func.params, body, self._func.ret_ty, pure, self._func.attrs)
        if self._is_simpler:
            checked = drop_unused(checked)
        return self._handing_on(checked) if self._flags and self._is_step else checked

    def _rewritten(self, binding: relax.Binding, dataflow: bool) -> list[relax.Binding]:
        """A binding, and before it those that its indices need."""
        value = binding.value
        if isinstance(binding, relax.VarBinding) and (step := called_loop(value)) in self._steps:
            return self._behind_loop(binding, step, dataflow)
        if not isinstance(binding, relax.VarBinding) or not takes_indices(value):
            return [binding]
        new: list[relax.Binding] = []
        arguments = [self._sized(arg, dataflow, new) for arg in value.args]
        for use in uses_of(value, arguments):
            among = Among(use, use.of(arguments), dataflow)
            indices = among.indices(new)
            self._operands[indices] = use.of(arguments)
            if is_const(indices) and use.is_static:
                _check_constant(indices.value.numpy(), use, value, binding.var)
                continue
            if use.is_static and _holds(use, self._ranges.of(indices)):
                simplest = self._ranges.simplest(indices)
                self._is_simpler |= not simplest.same_as(indices)
                use.put(arguments, among.put_back(simplest, new))
                continue
            known = use.is_static and static_shape(indices.ty) is not None
            checked = (self._clip if known else self._guard)(indices, use, value, binding.var, dataflow, new)
            use.put(arguments, among.put_back(checked, new))
        if all(map(relax.Expr.same_as, arguments, value.args)):
            return [binding]
        call = Call(value.op, arguments, value.attrs, value.ty_args, ret_ty=value.ty)
        return [*new, relax.VarBinding(binding.var, call)]

    def _handing_on(self, step: relax.Function) -> relax.Function:
        """The step of a loop, which hands on what it found."""
        step = hands_on(step, self._states, [flag for flag, _ in self._flags])
        self._steps[str(step.attrs["global_symbol"])] = CheckedStep(step, tuple(message for _, message in self._flags))
        return step

    def _behind_loop(self, binding: relax.VarBinding, step: str, dataflow: bool) -> list[relax.Binding]:
        """The call of a loop whose steps look at indices, and behind it a flag for each place."""
        checked = self._steps[step]
        bindings, lasts = behind_loop(self._mod, binding, checked.step, len(checked.messages), dataflow)
        for last, message in zip(lasts, checked.messages, strict=True):
            self._flag(last, last.name, message, bindings)
        return bindings

    def _flag(self, count: relax.Expr, name: str, message: str, new: list[relax.Binding]) -> None:
        """Remember whether a number is more than 0; what computes that is added to `new`."""
        if self._is_step:
            before, flag = relax.Var(f"{name}_before", NUMBER), relax.Var(f"{name}_outside", NUMBER)
            self._states.append(before)
            new.append(relax.VarBinding(flag, typed(relax.op.maximum(count, before), NUMBER)))
        else:
            flag = relax.Var(f"{name}_outside", relax.TensorType((), "bool"))
            new.append(relax.VarBinding(flag, typed(relax.op.greater(count, relax.const(0, "int32")), flag.ty)))
        self._flags.append((flag, message))

    def _sized(self, arg: relax.Expr, dataflow: bool, new: list[relax.Binding]) -> relax.Expr:
        """A tensor with names for its sizes, where it had none."""
        ty = arg.ty
        unknown = isinstance(ty, relax.TensorType) and ty.shape is None and ty.ndim >= 0
        if not unknown or not isinstance(arg, relax.Var):
            return arg
        if arg not in self._named:
            named_ty = relax.TensorType([tirx.Var(f"n{axis}", "int64") for axis in range(ty.ndim)], ty.dtype)
            named = (relax.DataflowVar if dataflow else relax.Var)(f"{arg.name}_sized", named_ty)
            new.append(relax.MatchCast(named, arg, named_ty))
            self._named[arg] = named
        return self._named[arg]

    def _guard(
        self, indices: relax.Expr, use: Use, call: Call, result: relax.Var, dataflow: bool, new: list[relax.Binding]
    ) -> relax.Expr:
        """Indices after a function that fails where one of them is outside."""
        message = self._message(indices, use, call)
        rank = len(indices.ty.shape)
        kind = GuardKind(rank, dtype_of(indices.ty), len(use.lowest), len(use.fits), message)
        guard = self._function(kind, "index_guard", lambda: index_guard(kind))
        lowest, highest, fits = (
            [tirx.const(n, "int64") if isinstance(n, int) else n for n in numbers]
            for numbers in (use.lowest, use.highest, [n for pair in use.fits for n in pair])
        )
        checked = (relax.DataflowVar if dataflow else relax.Var)(f"{result.name}_inside", indices.ty)
        arguments = relax.Tuple([indices, *lowest, *highest, *fits])
        new.append(relax.VarBinding(checked, typed(relax.call_tir(guard, arguments, indices.ty), indices.ty)))
        return checked

    def _clip(
        self, indices: relax.Expr, use: Use, call: Call, result: relax.Var, dataflow: bool, new: list[relax.Binding]
    ) -> relax.Expr:
        """Indices that are surely inside; what computes them is added to `new`."""
        make = relax.DataflowVar if dataflow else relax.Var
        if (indices, use) in self._clipped:
            return self._clipped[indices, use]
        dtype = dtype_of(indices.ty)
        low, high = (relax.const(np.array(b if len(b) > 1 else b[0], dtype), dtype) for b in (use.lowest, use.highest))
        floor = make(f"{result.name}_floor", indices.ty)
        inside = make(f"{result.name}_inside", indices.ty)
        count = make(f"{result.name}_count", NUMBER)
        shape = static_shape(indices.ty) or ()
        counter = self._function((shape, dtype, use), "index_outside", lambda: _any_outside(shape, dtype, use))
        new += [
            relax.VarBinding(floor, typed(relax.op.maximum(indices, low), indices.ty)),
            relax.VarBinding(inside, typed(relax.op.minimum(floor, high), indices.ty)),
            relax.VarBinding(count, typed(relax.call_tir(counter, relax.Tuple([indices]), count.ty), count.ty)),
        ]
        self._clipped[indices, use] = inside
        self._flag(count, result.name, self._message(indices, use, call), new)
        return inside

    def _message(self, indices: relax.Expr, use: Use, call: Call) -> str:
        return f"{DATA_MARK}{_what_is_wrong(call, use)}{origin(self._func, self._operands.get(indices, indices))}"

    def _function(self, key: object, name: str, make: Callable[[], tirx.PrimFunc]) -> GlobalVar:
        """A PrimFunc of the module, made where there is none for `key`."""
        if key not in self._functions:
            self._functions[key] = add_function(self._mod, name, make())
        return self._functions[key]

    def _report(self) -> list[relax.BindingBlock]:
        """The branch at the end: where any flag is set, the first one's error."""
        unit = relax.TupleType([])
        bindings: list[relax.Binding] = []
        anything: relax.Expr = self._flags[0][0]
        for flag, _ in self._flags[1:]:
            both = relax.Var("any_outside", flag.ty)
            bindings.append(relax.VarBinding(both, typed(relax.op.logical_or(anything, flag), flag.ty)))
            anything = both
        raising: list[relax.Binding] = []
        for flag, message in self._flags:
            fine = relax.Var(f"{flag.name}_not", flag.ty)
            raising.append(relax.VarBinding(fine, typed(relax.op.logical_not(flag), flag.ty)))
            check = typed(relax.op.assert_op(fine, [], format=message), unit)
            raising.append(relax.VarBinding(relax.Var("checked", unit), check))
        nothing = typed(relax.Tuple([]), unit)
        then = typed(relax.SeqExpr([relax.BindingBlock(raising)], nothing), unit)
        other = typed(relax.SeqExpr([], nothing), unit)
        branch = typed(relax.If(anything, then, other), unit)
        return [relax.BindingBlock([*bindings, relax.VarBinding(relax.Var("indices_checked", unit), branch)])]


def _what_is_wrong(call: Call, use: Use) -> str:
    """The operator, by its name in ONNX where it has another, and what it indexes."""
    known = all(isinstance(highest, int) for highest in use.highest)
    extents = f"the {' x '.join(str(highest + 1) for highest in use.highest)} that" if known else "what"
    return f"{operator_of(call)} got an index outside of {extents} it indexes"


def _holds(use: Use, found: Range | None) -> bool:
    """Whether all indices of a range are allowed, and fit."""
    return found is not None and max(use.lowest) <= found[0] and found[1] <= min(use.highest) and not use.fits


def surely_inside(call: Call) -> bool:
    """Whether all indices of a call are constants that lie inside of what they index, or it has none."""
    for use in uses_of(call, call.args):
        indices = use.of(call.args)
        if not is_const(indices) or not use.is_static or _is_outside(indices.value.numpy(), use):
            return False
    return True


def _is_outside(indices: np.ndarray, use: Use) -> bool:
    return bool(indices.size) and bool(((indices < np.array(use.lowest)) | (indices > np.array(use.highest))).any())


def _check_constant(indices: np.ndarray, use: Use, call: Call, result: relax.Var) -> None:
    if _is_outside(indices, use):
        raise ModelError(f"{result.name}: {_what_is_wrong(call, use)}; the index is a constant, so mend the model")


def _any_outside(shape: tuple[int, ...], dtype: str, use: Use) -> tirx.PrimFunc:
    """A function of indices: 1 where any of them is outside, else 0."""
    indices = te.placeholder(shape, dtype, "indices")

    def bound(limits: Sequence[int], last: tirx.Expr) -> tirx.Expr:
        value: tirx.Expr = tirx.const(limits[-1], dtype)
        for position in reversed(range(len(limits) - 1)):
            value = tirx.Select(last == position, tirx.const(limits[position], dtype), value)
        return value

    def outside(*at: tirx.Expr) -> tirx.Expr:
        index, last = indices(*at), at[-1] if at else tirx.const(0, "int64")
        wrong = tirx.any(index < bound(use.lowest, last), index > bound(use.highest, last))
        return tirx.Select(wrong, tirx.const(1, "int32"), tirx.const(0, "int32"))

    if shape:
        axes = [te.reduce_axis((0, extent), f"k{d}") for d, extent in enumerate(shape)]
        count = te.compute((), lambda: te.max(outside(*axes), axis=axes), name="count")
    else:
        count = te.compute((), lambda: outside(), name="count")
    return te.create_prim_func([indices, count]).without_attr("global_symbol")
