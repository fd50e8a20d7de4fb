"""Indices that are computed at run time: kept inside of the tensors they index, and reported where they were not.

TVM's gathers and scatters trust their indices, and read or write wherever these point. Here each index is clipped
before it is used, so memory is safe whatever the data say. Beside it a flag tells whether any index was outside; at the
end of the function a branch raises an error that names the operator. Who calls such a function is no longer pure
(`impure_calls`). A model without such an index costs nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.ir import Call, GlobalVar, Op

from ...errors import DATA_MARK, ModelError
from ..bindings import body_blocks, dtype_of, is_const, leaves, static_shape, typed
from ..module_pass import module_pass
from .impure_calls import with_impure


@dataclass(frozen=True, slots=True)
class _Use:
    """An operand of an operator that holds indices.

    Parameters
    ----------
    operand : int
    lowest, highest : tuple of int
        The indices that are allowed: one pair, or one for each entry of the last dimension.
    field : int, optional
        The field of the operand, where that is a tuple.
    """

    operand: int
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    field: int | None = None

    def of(self, arguments: Sequence[relax.Expr]) -> relax.Expr:
        """The indices among the arguments of a call."""
        return arguments[self.operand] if self.field is None else arguments[self.operand].fields[self.field]

    def put(self, arguments: list[relax.Expr], indices: relax.Expr) -> None:
        """Give a call other indices."""
        if self.field is not None:
            fields = list(arguments[self.operand].fields)
            fields[self.field] = indices
            indices = relax.Tuple(fields)
        arguments[self.operand] = indices


_Finder = Callable[[Call, tuple[int, ...], tuple[int, ...]], list[_Use]]
"""The uses of a call, given the static shapes of the tensor and of its indices."""


def CheckIndices() -> tvm.transform.Pass:
    """Make the pass; it works on Relax operators, so it comes before they are legalized."""
    return _check_indices


@module_pass("RammerCheckIndices")
def _check_indices(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    made, raising = mod.clone(), []
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            checked = _Function(made, func).checked()
            if checked is not None:
                made.update_func(var, checked)
                raising += [var] if func.is_pure and not checked.is_pure else []
    return with_impure(made, raising)


class _Function:
    """Rewrites one function.

    Parameters
    ----------
    mod : tvm.IRModule
        Gets the functions that look for indices outside.
    func : relax.Function
    """

    def __init__(self, mod: tvm.IRModule, func: relax.Function) -> None:
        self._mod, self._func = mod, func
        self._flags: list[tuple[relax.Var, str]] = []
        self._clipped: dict[tuple[relax.Expr, _Use], relax.Expr] = {}
        self._counters: dict[object, GlobalVar] = {}

    def checked(self) -> relax.Function | None:
        """The function with checks; None where it has no index that only run time knows."""
        blocks = []
        for block in body_blocks(self._func):
            dataflow = isinstance(block, relax.DataflowBlock)
            bindings: list[relax.Binding] = []
            for binding in block.bindings:
                bindings += self._rewritten(binding, dataflow)
            blocks.append(relax.DataflowBlock(bindings) if dataflow else relax.BindingBlock(bindings))
        if not self._clipped:
            return None
        if self._flags:
            blocks += self._report()
        result = self._func.body.body
        pure = self._func.is_pure and not self._flags
        body = typed(relax.SeqExpr(blocks, result), result.ty)
        return relax.Function(self._func.params, body, self._func.ret_ty, pure, self._func.attrs)

    def _rewritten(self, binding: relax.Binding, dataflow: bool) -> list[relax.Binding]:
        """A binding, and before it those that its indices need."""
        value = binding.value
        uses = _uses(value) if isinstance(binding, relax.VarBinding) else []
        new: list[relax.Binding] = []
        arguments = list(value.args) if uses else []
        for use in uses:
            indices = use.of(arguments)
            if is_const(indices):
                _check_constant(indices.value.numpy(), use, value, binding.var)
                continue
            use.put(arguments, self._guarded(indices, use, value, binding.var, dataflow, new))
        if not new:
            return [binding]
        call = Call(value.op, arguments, value.attrs, value.ty_args, ret_ty=value.ty)
        return [*new, relax.VarBinding(binding.var, call)]

    def _guarded(
        self, indices: relax.Expr, use: _Use, call: Call, result: relax.Var, dataflow: bool, new: list[relax.Binding]
    ) -> relax.Expr:
        """Indices that are surely inside; what computes them is added to `new`."""
        make = relax.DataflowVar if dataflow else relax.Var
        if (indices, use) in self._clipped:
            return self._clipped[indices, use]
        dtype = dtype_of(indices.ty)
        low, high = (relax.const(np.array(b if len(b) > 1 else b[0], dtype), dtype) for b in (use.lowest, use.highest))
        floor = make(f"{result.name}_floor", indices.ty)
        inside = make(f"{result.name}_inside", indices.ty)
        count = make(f"{result.name}_count", relax.TensorType((), "int32"))
        flag = relax.Var(f"{result.name}_outside", relax.TensorType((), "bool"))
        counter = self._counter(static_shape(indices.ty) or (), dtype, use)
        new += [
            relax.VarBinding(floor, typed(relax.op.maximum(indices, low), indices.ty)),
            relax.VarBinding(inside, typed(relax.op.minimum(floor, high), indices.ty)),
            relax.VarBinding(count, typed(relax.call_tir(counter, relax.Tuple([indices]), count.ty), count.ty)),
            relax.VarBinding(flag, typed(relax.op.greater(count, relax.const(0, "int32")), flag.ty)),
        ]
        self._clipped[indices, use] = inside
        self._flags.append((flag, f"{DATA_MARK}{_told(call, use)}{self._origin(indices)}"))
        return inside

    def _origin(self, indices: relax.Expr) -> str:
        """From which inputs of the function the indices are computed."""
        values = {b.var: b.value for block in body_blocks(self._func) for b in block.bindings}
        names, todo, seen = [], [indices], set()
        while todo:
            for leaf in leaves(todo.pop()):
                if isinstance(leaf, relax.Var) and leaf not in seen:
                    seen.add(leaf)
                    todo += [values[leaf]] if leaf in values else []
                    names += [] if leaf in values else [leaf.name]
        # Braces would be filled in by the assertion.
        told = ", ".join(repr(name) for name in sorted(names)).replace("{", "{{").replace("}", "}}")
        return f"; mend the data of {told}" if names else ""

    def _counter(self, shape: tuple[int, ...], dtype: str, use: _Use) -> GlobalVar:
        """The PrimFunc that tells whether any index is outside."""
        key = (shape, dtype, use)
        if key not in self._counters:
            taken = {var.name_hint for var in self._mod.get_global_vars()}
            number = next(n for n in range(len(taken) + 1) if f"index_outside{n}" not in taken)
            func = _any_outside(shape, dtype, use)
            var = GlobalVar(f"index_outside{number}")
            self._mod.update_func(typed(var, func.ty), func)
            self._counters[key] = var
        return self._counters[key]

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


def _told(call: Call, use: _Use) -> str:
    """What is wrong, the operator first: by its name in ONNX, where it has another."""
    name = call.op.name.removeprefix("relax.")
    extents = " x ".join(str(highest + 1) for highest in use.highest)
    return f"{_ONNX_NAMES.get(name, name)} got an index outside of the {extents} that it indexes"


_ONNX_NAMES = {
    "take": "Gather",
    "gather_elements": "GatherElements",
    "gather_nd": "GatherND",
    "scatter_elements": "ScatterElements",
    "scatter_nd": "ScatterND",
}


def surely_inside(call: Call) -> bool:
    """Whether all indices of a call are constants that lie inside of what they index, or it has none."""
    for use in _uses(call):
        indices = use.of(call.args)
        if not is_const(indices) or _is_outside(indices.value.numpy(), use):
            return False
    return True


def _is_outside(indices: np.ndarray, use: _Use) -> bool:
    return bool(indices.size) and bool(((indices < np.array(use.lowest)) | (indices > np.array(use.highest))).any())


def _check_constant(indices: np.ndarray, use: _Use, call: Call, result: relax.Var) -> None:
    if _is_outside(indices, use):
        raise ModelError(f"{result.name}: {_told(call, use)}; the index is a constant, so mend the model")


def _any_outside(shape: tuple[int, ...], dtype: str, use: _Use) -> tirx.PrimFunc:
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


def _uses(value: relax.Expr) -> list[_Use]:
    """The operands of an operator that hold indices of tensors of known shape."""
    if not isinstance(value, Call) or not isinstance(value.op, Op):
        return []
    if value.op.name in _BY_TENSORS:
        return _each_axis(value)
    finder = _FINDERS.get(value.op.name)
    data, indices = (static_shape(arg.ty) for arg in value.args[:2]) if finder else (None, None)
    if finder is None or data is None or indices is None or 0 in data or 0 in indices:
        return []
    return finder(value, data, indices)


_BY_TENSORS = ("relax.index_tensor", "relax.index_put")
"""Operators that take a tuple of indices, one for each of the first dimensions."""


def _each_axis(call: Call) -> list[_Use]:
    data, indices = static_shape(call.args[0].ty), call.args[1]
    if data is None or 0 in data or not isinstance(indices, relax.Tuple):
        return []
    known = [(i, static_shape(field.ty)) for i, field in enumerate(indices.fields)]
    return [_Use(1, (0,), (data[i] - 1,), i) for i, shape in known if shape is not None and 0 not in shape]


def _along(axis: int, shape: tuple[int, ...], negative: bool = False) -> list[_Use]:
    return [_Use(1, (-shape[axis] if negative else 0,), (shape[axis] - 1,))]


def _take(call: Call, data: tuple[int, ...], indices: tuple[int, ...]) -> list[_Use]:
    if call.attrs.mode != "fast":
        return []
    if call.attrs.axis is None:
        return [_Use(1, (0,), (int(np.prod(data)) - 1,))]
    return _along(int(call.attrs.axis), data)


def _coordinates(data: Sequence[int], indices: tuple[int, ...], first: int) -> list[_Use]:
    extents = tuple(data[first : first + indices[-1]])
    return [_Use(1, (0,) * len(extents), tuple(n - 1 for n in extents))]


_FINDERS: Mapping[str, _Finder] = {
    "relax.take": _take,
    "relax.gather_elements": lambda call, data, _: _along(int(call.attrs.axis), data),
    "relax.scatter_elements": lambda call, data, _: _along(int(call.attrs.axis), data, negative=True),
    "relax.gather_nd": lambda call, data, indices: _coordinates(data, indices, int(call.attrs.batch_dims)),
    "relax.scatter_nd": lambda call, data, indices: _coordinates(data, indices, 0),
}
