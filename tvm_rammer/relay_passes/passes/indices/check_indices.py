"""Indices that are computed at run time: kept inside of the tensors they index, and reported where they were not.

TVM's gathers and scatters trust their indices, and read or write wherever these point. Here each index is clipped
before it is used, so memory is safe whatever the data say. Beside it a flag tells whether any index was outside; at the
end of the function a branch raises an error that names the operator. Who calls such a function is no longer pure
(`impure_calls`). A model without such an index costs nothing.

Where sizes are known at run time only, the operator is no rOperator, and a function looks at the indices before
(`index_guard`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.ir import Call, GlobalVar, Op

from ....errors import DATA_MARK, ModelError
from ...bindings import body_blocks, dtype_of, is_const, leaves, static_shape, typed
from ...module_pass import module_pass
from ..impure_calls import with_impure
from .index_guard import GuardKind, index_guard

Size: TypeAlias = Any
"""An extent, or a bound: an int, or an expression of tirx where only run time knows it."""


@dataclass(frozen=True, slots=True)
class _Use:
    """An operand of an operator that holds indices.

    Parameters
    ----------
    operand : int
    lowest, highest : tuple of (int or tirx.Expr)
        The indices that are allowed: one pair, or one for each entry of the last dimension.
    field : int, optional
        The field of the operand, where that is a tuple.
    fits : tuple of (extent, extent)
        The first of each must not be larger, or the operator reads past the end of something.
    """

    operand: int
    lowest: tuple[Size, ...]
    highest: tuple[Size, ...]
    field: int | None = None
    fits: tuple[tuple[Size, Size], ...] = ()

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known, and there is an index that is allowed."""
        sizes = (*self.lowest, *self.highest, *(size for pair in self.fits for size in pair))
        return all(isinstance(size, int) for size in sizes) and all(map(int.__le__, self.lowest, self.highest))

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


_Shape: TypeAlias = tuple[Size, ...]
_Finder = Callable[[Call, Sequence[_Shape]], list[_Use]]
"""The uses of a call, given the shapes of the tensor, of its indices, and of what else it takes."""


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
        self._named: dict[relax.Var, relax.Var] = {}
        self._functions: dict[object, GlobalVar] = {}

    def checked(self) -> relax.Function | None:
        """The function with checks; None where it has no index that only run time knows."""
        blocks = []
        for block in body_blocks(self._func):
            dataflow = isinstance(block, relax.DataflowBlock)
            bindings: list[relax.Binding] = []
            self._clipped, self._named = {}, {}  # what a dataflow block computes, no other block knows
            for binding in block.bindings:
                bindings += self._rewritten(binding, dataflow)
            blocks.append(relax.DataflowBlock(bindings) if dataflow else relax.BindingBlock(bindings))
        if not self._functions:
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
        if not isinstance(binding, relax.VarBinding) or not _takes_indices(value):
            return [binding]
        new: list[relax.Binding] = []
        arguments = [self._sized(arg, dataflow, new) for arg in value.args]
        for use in _uses(value, arguments):
            indices = use.of(arguments)
            if is_const(indices) and use.is_static:
                _check_constant(indices.value.numpy(), use, value, binding.var)
            elif use.is_static and static_shape(indices.ty) is not None:
                use.put(arguments, self._clip(indices, use, value, binding.var, dataflow, new))
            else:
                use.put(arguments, self._guard(indices, use, value, binding.var, dataflow, new))
        if all(map(relax.Expr.same_as, arguments, value.args)):
            return [binding]
        call = Call(value.op, arguments, value.attrs, value.ty_args, ret_ty=value.ty)
        return [*new, relax.VarBinding(binding.var, call)]

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
        self, indices: relax.Expr, use: _Use, call: Call, result: relax.Var, dataflow: bool, new: list[relax.Binding]
    ) -> relax.Expr:
        """Indices after a function that fails where one of them is outside."""
        message = f"{DATA_MARK}{_told(call, use)}{self._origin(indices)}"
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
        shape = static_shape(indices.ty) or ()
        counter = self._function((shape, dtype, use), "index_outside", lambda: _any_outside(shape, dtype, use))
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

    def _function(self, key: object, name: str, make: Callable[[], tirx.PrimFunc]) -> GlobalVar:
        """A PrimFunc of the module, made where there is none for `key`."""
        if key not in self._functions:
            taken = {var.name_hint for var in self._mod.get_global_vars()}
            number = next(n for n in range(len(taken) + 1) if f"{name}{n}" not in taken)
            func, var = make(), GlobalVar(f"{name}{number}")
            self._mod.update_func(typed(var, func.ty), func)
            self._functions[key] = var
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


def _told(call: Call, use: _Use) -> str:
    """What is wrong, the operator first: by its name in ONNX, where it has another."""
    name = call.op.name.removeprefix("relax.")
    known = all(isinstance(highest, int) for highest in use.highest)
    extents = f"the {' x '.join(str(highest + 1) for highest in use.highest)} that" if known else "what"
    return f"{_ONNX_NAMES.get(name, name)} got an index outside of {extents} it indexes"


_ONNX_NAMES = {
    "take": "Gather",
    "gather_elements": "GatherElements",
    "gather_nd": "GatherND",
    "scatter_elements": "ScatterElements",
    "scatter_nd": "ScatterND",
}


def surely_inside(call: Call) -> bool:
    """Whether all indices of a call are constants that lie inside of what they index, or it has none."""
    for use in _uses(call, call.args):
        indices = use.of(call.args)
        if not is_const(indices) or not use.is_static or _is_outside(indices.value.numpy(), use):
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


def _takes_indices(value: relax.Expr) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in (*_FINDERS, *_BY_TENSORS)


def _uses(call: Call, arguments: Sequence[relax.Expr]) -> list[_Use]:
    """The operands of an operator that hold indices, given its arguments with what is known of their sizes."""
    if not _takes_indices(call):
        return []
    if call.op.name in _BY_TENSORS:
        return _each_axis(arguments)
    shapes = [shape for arg in arguments if (shape := _extents(arg.ty)) is not None]
    if len(shapes) < len(arguments) or _has_none(shapes[1]):
        return []
    return _FINDERS[call.op.name](call, shapes)


def _extents(ty: object) -> _Shape | None:
    """The shape of a tensor; None where its number of axes is not known, or it is none."""
    if not isinstance(ty, relax.TensorType) or not isinstance(ty.shape, relax.ShapeExpr):
        return None
    return tuple(int(size) if isinstance(size, tirx.IntImm) else size for size in ty.shape)


def _has_none(shape: _Shape) -> bool:
    """Whether a tensor is known to have no elements."""
    return any(isinstance(size, int) and size == 0 for size in shape)


def _fits(small: Sequence[Size], large: Sequence[Size]) -> tuple[tuple[Size, Size], ...]:
    """Pairs of sizes that only run time can compare; others were compared when types were found."""
    pairs = zip(small, large, strict=True)
    return tuple((a, b) for a, b in pairs if not (isinstance(a, int) and isinstance(b, int)) and a is not b)


_BY_TENSORS = ("relax.index_tensor", "relax.index_put")
"""Operators that take a tuple of indices, one for each of the first dimensions."""


def _each_axis(arguments: Sequence[relax.Expr]) -> list[_Use]:
    data, indices = _extents(arguments[0].ty), arguments[1]
    if data is None or not isinstance(indices, relax.Tuple):
        return []
    known = [(i, _extents(field.ty)) for i, field in enumerate(indices.fields)]
    return [_Use(1, (0,), (data[i] - 1,), i) for i, shape in known if shape is not None and not _has_none(shape)]


def _take(call: Call, shapes: Sequence[_Shape]) -> list[_Use]:
    if call.attrs.mode != "fast":
        return []
    size = math.prod(shapes[0]) if call.attrs.axis is None else shapes[0][int(call.attrs.axis)]
    return [_Use(1, (0,), (size - 1,))]


def _elements(call: Call, shapes: Sequence[_Shape]) -> list[_Use]:
    """Each index has a place on the other axes, too, and in a scatter an update."""
    data, indices, *updates = shapes
    axis = int(call.attrs.axis) % len(data)
    fits = _fits(indices[:axis] + indices[axis + 1 :], data[:axis] + data[axis + 1 :])
    return [
        _Use(1, (-data[axis] if updates else 0,), (data[axis] - 1,), fits=fits + _fits(indices, *updates or [indices]))
    ]


def _gather_nd(call: Call, shapes: Sequence[_Shape]) -> list[_Use]:
    data, indices = shapes
    batch = int(call.attrs.batch_dims)
    return _coordinates(data[batch:], indices, _fits(indices[:batch], data[:batch]))


def _scatter_nd(_call: Call, shapes: Sequence[_Shape]) -> list[_Use]:
    data, indices, updates = shapes
    written = (*indices[:-1], *data[indices[-1] :]) if isinstance(indices[-1], int) else updates
    return _coordinates(data, indices, _fits(written, updates))


def _coordinates(data: _Shape, indices: _Shape, fits: tuple[tuple[Size, Size], ...]) -> list[_Use]:
    if not isinstance(indices[-1], int):
        raise ModelError("a gather or scatter by coordinates does not know of how many numbers each is; give its shape")
    extents = data[: indices[-1]]
    return [_Use(1, (0,) * len(extents), tuple(n - 1 for n in extents), fits=fits)]


_FINDERS: Mapping[str, _Finder] = {
    "relax.take": _take,
    "relax.gather_elements": _elements,
    "relax.scatter_elements": _elements,
    "relax.gather_nd": _gather_nd,
    "relax.scatter_nd": _scatter_nd,
}
