"""Sizes that only the data say, and that an operator needs to be equal: they are compared when the model runs.

TVM takes it for granted that a product's inner sizes agree, that a reshape keeps the number of elements, and that what
is broadcast fits: where it cannot know, it reads past the end of a tensor. And of two tensors of unknown sizes it does
not know the sum's shape, so nothing that reads it compiles. Here a function copies such a tensor first
(`size_guard`): it ends the call where sizes differ, and its result has the sizes that the operator needs. (A
`relax.MatchCast` would not do: TVM's CanonicalizeBindings takes it for a definition, and drops it.)

Sizes of two tensors that are added are taken for equal. Where one of them turns out to be 1, which only data could say,
the call is refused, too.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar, Op

from ....errors import DATA_MARK
from ...bindings import body_blocks, dtype_of, is_call, result_of, static_shape, substitute, typed
from ...module_pass import module_pass
from .index_guard import size_guard
from .origin import origin

Sizes: TypeAlias = list[Any]
"""Extents of a tensor: expressions of tirx."""

_ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        "add", "subtract", "multiply", "divide", "floor_divide", "floor_mod", "mod", "power", "maximum", "minimum",
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
        "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "where",
    )
)  # fmt: skip
_ONNX_NAMES = {
    "matmul": "MatMul", "broadcast_to": "Expand", "scatter_elements": "ScatterElements", "multiply": "Mul",
    "subtract": "Sub", "divide": "Div", "power": "Pow", "maximum": "Max", "minimum": "Min", "floor_mod": "Mod",
}  # fmt: skip
"""Where an operator has another name in ONNX than in Relax."""
_WITH_TYPES = ("relax.call_tir", "relax.call_tir_with_grad", "relax.call_dps_packed", "relax.call_pure_packed")
"""Calls whose results have the types that they say."""


def CheckSizes() -> tvm.transform.Pass:
    """Make the pass; it works on Relax operators, so it comes before they are legalized."""
    return _check_sizes


@module_pass("RammerCheckSizes")
def _check_sizes(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and not _is_static(func):
            checked = _Function(made, func).checked()
            if checked is not None:
                made.update_func(var, checked)
    return made


def _is_static(func: relax.Function) -> bool:
    """Whether all tensors that operators compute have known shapes."""
    return all(
        static_shape(binding.var.ty) is not None or not isinstance(binding.var.ty, relax.TensorType | relax.ShapeType)
        for block in body_blocks(func)
        for binding in block.bindings
    )


class _Function:
    """Rewrites one function.

    Parameters
    ----------
    mod : tvm.IRModule
        Gets the functions that compare sizes.
    func : relax.Function
    """

    def __init__(self, mod: tvm.IRModule, func: relax.Function) -> None:
        self._mod, self._func = mod, func
        self._analyzer = tvm.sym.Analyzer()
        self._made: list[relax.Binding] = []
        self._class: type[relax.Var] = relax.Var
        self._values: dict[relax.Expr, relax.Expr] = {}
        self._call: Call | None = None
        self._changes = 0
        bindings = [b for block in body_blocks(func) for b in block.bindings]
        # What a branch reads keeps its variable, and so its type.
        self._retypes = not any(isinstance(b.value, relax.If | relax.Function) for b in bindings)

    def checked(self) -> relax.Function | None:
        """The function with what compares sizes; None where nothing has to be compared."""
        blocks = []
        for block in body_blocks(self._func):
            dataflow = isinstance(block, relax.DataflowBlock)
            self._made, self._class = [], relax.DataflowVar if dataflow else relax.Var
            for binding in block.bindings:
                self._rewrite(binding)
            blocks.append(relax.DataflowBlock(self._made) if dataflow else relax.BindingBlock(self._made))
        if not self._changes:
            return None
        result = relax.BlockBuilder().normalize(substitute(result_of(self._func), self._values))
        body = typed(relax.SeqExpr(blocks, result), result.ty)
        ret_ty = result.ty if self._retypes else self._func.ret_ty
        return relax.Function(self._func.params, body, ret_ty, self._func.is_pure, self._func.attrs)

    def _rewrite(self, binding: relax.Binding) -> None:
        value = substitute(binding.value, self._values)
        if isinstance(binding, relax.MatchCast):
            self._made.append(relax.MatchCast(binding.var, value, binding.ty))
            return
        rule = _RULES.get(value.op.name) if isinstance(value, Call) and isinstance(value.op, Op) else None
        if rule is not None:
            self._call = binding.value
            value = rule(self, value)
        if value.same_as(binding.value) or not self._retypes or is_call(value, _WITH_TYPES):
            self._made.append(relax.VarBinding(binding.var, typed(value, binding.var.ty)))
            return
        if isinstance(value, Call):
            value = Call(value.op, value.args, value.attrs, value.ty_args)
        value = relax.BlockBuilder().normalize(value)
        if tvm_ffi.structural_equal(value.ty, binding.var.ty):
            self._made.append(relax.VarBinding(binding.var, value))
            return
        kind = relax.DataflowVar if isinstance(binding.var, relax.DataflowVar) else relax.Var
        var = kind(binding.var.name, value.ty)
        self._values[binding.var] = var
        self._made.append(relax.VarBinding(var, value))

    # What rules are made of.

    def sizes(self, tensor: relax.Expr) -> tuple[relax.Expr, Sizes] | None:
        """A tensor and its extents, which get names where they had none; None where not even its rank is known."""
        if not isinstance(tensor.ty, relax.TensorType) or tensor.ty.ndim < 0:
            return None
        if tensor.ty.shape is not None:
            return (tensor, list(tensor.ty.shape)) if isinstance(tensor.ty.shape, relax.ShapeExpr) else None
        ty = relax.TensorType(_names(tensor.ty.ndim), tensor.ty.dtype)
        return self._name(tensor, ty), list(ty.shape)

    def like(self, tensor: relax.Expr, sizes: Sizes, wanted: Mapping[int, Any]) -> relax.Expr:
        """A tensor some of whose extents are other expressions, which they are compared with."""
        differ = {axis: size for axis, size in wanted.items() if not self.equal(sizes[axis], size)}
        if all(_is_known(size) and _is_known(sizes[axis]) for axis, size in differ.items()):
            return tensor  # they fit, or TVM says what is wrong
        made = [differ.get(axis, size) for axis, size in enumerate(sizes)]
        return self.guarded(tensor, [(sizes[axis], size) for axis, size in differ.items()], made)

    def guarded(
        self, tensor: relax.Expr, equal: Sequence[tuple[Any, Any]], sizes: Sizes, *, or_one: bool = False
    ) -> relax.Expr:
        """A copy of a tensor, of these sizes, made where those of each pair are equal (or the second one is 1)."""
        call = self._call
        assert call is not None
        name = call.op.name.removeprefix("relax.")
        name = _ONNX_NAMES.get(name, name.capitalize())
        told = f"{name} got tensors whose sizes, which only the data say, are not equal"
        rank, dtype = len(sizes), dtype_of(tensor.ty)
        func = size_guard(rank, dtype, len(equal), f"{DATA_MARK}{told}{origin(self._func, *call.args)}", or_one=or_one)
        taken = {var.name_hint for var in self._mod.get_global_vars()}
        var = GlobalVar(next(n for n in (f"size_guard{i}" for i in range(len(taken) + 1)) if n not in taken))
        self._mod.update_func(typed(var, func.ty), func)
        self._changes += 1
        ty = relax.TensorType(sizes, dtype)
        numbers = [n for pair in equal for n in pair]
        return self.bind(relax.call_tir(var, relax.Tuple([tensor, *numbers]), ty), ty)

    def named_shape(self, shape: relax.Expr) -> tuple[relax.Expr, Sizes]:
        """A shape and its extents, which get names where they had none."""
        if isinstance(shape, relax.ShapeExpr):
            return shape, list(shape)
        ty = shape.ty if shape.ty.values is not None else relax.ShapeType(_names(shape.ty.ndim))
        return shape if ty is shape.ty else self._name(shape, ty), list(ty.values)

    def bind(self, value: relax.Expr, ty: relax.Type) -> relax.Expr:
        """A variable for a value."""
        var = self._class("fitting", ty)
        self._made.append(relax.VarBinding(var, typed(value, ty)))
        return var

    def _name(self, value: relax.Expr, ty: relax.Type) -> relax.Expr:
        var = self._class("sized", ty)
        self._changes += 1
        self._made.append(relax.MatchCast(var, value, ty))
        return var

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two extents are surely equal."""
        return bool(tvm_ffi.structural_equal(a, b) or self._analyzer.can_prove_equal(a, b))

    # Rules: a call of an operator with what it reads compared.

    def broadcast(self, tensors: Sequence[relax.Expr], kept: int = 0) -> list[relax.Expr]:
        """Tensors that fit each other, but for the last `kept` axes."""
        sized = [self.sizes(tensor) for tensor in tensors]
        known = [s for s in sized if s is not None]
        if len(known) < len(tensors) or len(tensors) < 2:
            return list(tensors)
        wanted: list[dict[int, Any]] = [{} for _ in known]
        for place in range(kept + 1, 1 + max(len(sizes) for _, sizes in known)):
            here = {n: sizes[-place] for n, (_, sizes) in enumerate(known) if place <= len(sizes)}
            long = {n: size for n, size in here.items() if not _is_one(size)}
            first = next((size for size in long.values() if _is_known(size)), next(iter(long.values()), None))
            for n in long:
                wanted[n][len(known[n][1]) - place] = first
        return [self.like(*one, want) for one, want in zip(known, wanted, strict=True)]

    def elementwise(self, call: Call) -> Call:
        return self._with(call, self.broadcast(call.args))

    def matmul(self, call: Call) -> Call:
        left, right = (self.sizes(arg) for arg in call.args)
        if left is None or right is None:
            return call
        at = max(0, len(right[1]) - 2)
        a, b = left[1][-1], right[1][at]
        inner = a if _is_known(a) else b
        factors = [self.like(*left, {len(left[1]) - 1: inner}), self.like(*right, {at: inner})]
        return self._with(call, self.broadcast(factors, 2) if min(len(left[1]), len(right[1])) > 1 else factors)

    def concat(self, call: Call) -> Call:
        if not isinstance(call.args[0], relax.Tuple):
            return call
        sized = [self.sizes(field) for field in call.args[0].fields]
        known = [s for s in sized if s is not None]
        ranks = {len(sizes) for _, sizes in known}
        if len(known) < len(sized) or len(ranks) != 1:
            return call
        (rank,) = ranks
        others = [axis for axis in range(rank) if axis != int(call.attrs.axis or 0) % rank]
        wanted = {}
        for axis in others:
            here = [sizes[axis] for _, sizes in known]
            wanted[axis] = next(filter(_is_known, here), here[0])
        return self._with(call, [relax.Tuple([self.like(*one, wanted) for one in known])])

    def einsum(self, call: Call) -> Call:
        terms = str(call.attrs.subscripts).replace(" ", "").split("->")[0].split(",")
        fields = call.args[0].fields if isinstance(call.args[0], relax.Tuple) else ()
        known = [s for s in map(self.sizes, fields) if s is not None]
        if len(known) < len(terms):
            return call
        axes = [_axes_of(term, len(sizes)) for term, (_, sizes) in zip(terms, known, strict=True)]
        extents: dict[str, Any] = {}
        for letters, (_, sizes) in zip(axes, known, strict=True):
            for axis, letter in letters.items():
                if letter not in extents or not _is_known(extents[letter]):
                    extents[letter] = (
                        sizes[axis] if letter not in extents or _is_known(sizes[axis]) else extents[letter]
                    )
        made = [
            self.like(*one, {axis: extents[letter] for axis, letter in letters.items()})
            for one, letters in zip(known, axes, strict=True)
        ]
        return self._with(call, [relax.Tuple(made)])

    def reshape(self, call: Call) -> Call:
        sized, shape = self.sizes(call.args[0]), call.args[1]
        if sized is None or not isinstance(shape, relax.ShapeExpr):
            return call
        before, after = (_product(sizes) for sizes in (sized[1], list(shape)))
        if self.equal(before, after) or (_is_known(before) and _is_known(after)):
            return self._with(call, [sized[0], shape])
        flat = relax.TensorType([before], call.ty.dtype)
        row = self.bind(relax.op.reshape(sized[0], flat.shape), flat)
        return self._with(call, [self.guarded(row, [(before, after)], [after]), shape])

    def broadcast_to(self, call: Call) -> Call:
        """As ONNX's Expand has it: a target of 1 leaves an extent as it is."""
        sized, shape = self.sizes(call.args[0]), call.args[1]
        if sized is None or not isinstance(shape.ty, relax.ShapeType) or shape.ty.ndim < len(sized[1]):
            return call
        tensor, sizes = sized
        named, target = self.named_shape(shape)
        pairs, made = [], list(target)
        for axis, size in enumerate(sizes, len(target) - len(sizes)):
            if not _is_one(size) and not self.equal(size, target[axis]):
                pairs.append((size, target[axis]))
                made[axis] = size
        if not pairs:
            return self._with(call, [tensor, shape if named.same_as(shape) else relax.ShapeExpr(target)])
        return self._with(call, [self.guarded(tensor, pairs, sizes, or_one=True), relax.ShapeExpr(made)])

    def scatter_elements(self, call: Call) -> Call:
        data, indices, updates = call.args
        sized, other = self.sizes(indices), self.sizes(updates)
        if sized is None or other is None or len(sized[1]) != len(other[1]):
            return call
        return self._with(call, [data, sized[0], self.like(*other, dict(enumerate(sized[1])))])

    @staticmethod
    def _with(call: Call, args: Sequence[relax.Expr]) -> Call:
        same = all(new.same_as(old) or _same_fields(new, old) for new, old in zip(args, call.args, strict=True))
        return call if same else Call(call.op, list(args), call.attrs, call.ty_args, ret_ty=call.ty)


_RULES: Mapping[str, Callable[[_Function, Call], Call]] = {
    **dict.fromkeys(_ELEMENTWISE, _Function.elementwise),
    "relax.matmul": _Function.matmul,
    "relax.concat": _Function.concat,
    "relax.einsum": _Function.einsum,
    "relax.reshape": _Function.reshape,
    "relax.broadcast_to": _Function.broadcast_to,
    "relax.scatter_elements": _Function.scatter_elements,
}


def _axes_of(term: str, rank: int) -> dict[int, str]:
    """The letter of each axis of an operand of an Einsum, but for those that an ellipsis stands for."""
    before, dots, after = term.partition("...")
    first = rank - len(after) if dots else 0
    return dict(enumerate(before)) | dict(enumerate(after, first) if dots else ())


def _names(count: int) -> Sizes:
    return [tirx.Var(f"size{axis}", "int64") for axis in range(count)]


def _is_known(size: Any) -> bool:
    return isinstance(size, tirx.IntImm)


def _is_one(size: Any) -> bool:
    return _is_known(size) and int(size) == 1


def _same_fields(new: relax.Expr, old: relax.Expr) -> bool:
    both = isinstance(new, relax.Tuple) and isinstance(old, relax.Tuple)
    return both and all(a.same_as(b) for a, b in zip(new.fields, old.fields, strict=True))


def _product(sizes: Sequence[Any]) -> Any:
    count: Any = tirx.IntImm("int64", 1)
    for size in sizes:
        count = count * size
    return count
