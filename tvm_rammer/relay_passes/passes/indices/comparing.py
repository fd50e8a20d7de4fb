"""What the rules of `size_rules` are made of: extents with names, and tensors whose extents are compared."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar

from ....errors import DATA_MARK
from ...bindings import add_function, dtype_of, typed
from .index_guard import Relation, extent_guard, size_guard, step_guard
from .messages import operator_of, origin

Sizes: TypeAlias = list[Any]
"""Extents of a tensor: expressions of tirx."""


class Comparing:
    """Adds to a block of a function what compares sizes.

    Parameters
    ----------
    mod : tvm.IRModule
        Gets the functions that compare sizes.
    func : relax.Function

    Attributes
    ----------
    made : list of relax.Binding
        Of the block.
    kind : type
        Of its variables.
    call : Call or None
        What the sizes are compared for, as it is in the function.
    changes : int
        How much there was to compare or to name.
    """

    def __init__(self, mod: tvm.IRModule, func: relax.Function) -> None:
        self._mod, self._func = mod, func
        self._analyzer = tvm.sym.Analyzer()
        self.made: list[relax.Binding] = []
        self.kind: type[relax.Var] = relax.Var
        self.call: Call | None = None
        self.changes = 0

    def sizes(self, tensor: relax.Expr) -> tuple[relax.Expr, Sizes] | None:
        """A tensor and its extents, which get names where they had none; None where not even its rank is known."""
        if not isinstance(tensor.ty, relax.TensorType) or tensor.ty.ndim < 0:
            return None
        if tensor.ty.shape is not None:
            return (tensor, list(tensor.ty.shape)) if isinstance(tensor.ty.shape, relax.ShapeExpr) else None
        ty = relax.TensorType(_names(tensor.ty.ndim), tensor.ty.dtype)
        return self._name(tensor, ty), list(ty.shape)

    def like(
        self, tensor: relax.Expr, sizes: Sizes, wanted: Mapping[int, Any], relation: Relation = Relation.EQUAL
    ) -> relax.Expr:
        """A tensor some of whose extents are other expressions, which they are compared with."""
        differ = {axis: size for axis, size in wanted.items() if not self.equal(sizes[axis], size)}
        if all(is_known(size) and is_known(sizes[axis]) for axis, size in differ.items()):
            return tensor  # they fit, or TVM says what is wrong
        made = [differ.get(axis, size) for axis, size in enumerate(sizes)]
        return self.guarded(tensor, [(sizes[axis], size) for axis, size in differ.items()], made, relation)

    def guarded(
        self, tensor: relax.Expr, equal: Sequence[tuple[Any, Any]], sizes: Sizes, relation: Relation = Relation.EQUAL
    ) -> relax.Expr:
        """A copy of a tensor, of these sizes, made where those of each pair have a relation."""
        call = self.call
        assert call is not None
        told = f"{operator_of(call)} got tensors whose sizes, which only the data say, are {relation.value}"
        rank, dtype = len(sizes), dtype_of(tensor.ty)
        message = f"{DATA_MARK}{told}{origin(self._func, *call.args)}"
        guard = self._function("size_guard", size_guard(rank, dtype, len(equal), message, relation))
        ty = relax.TensorType(sizes, dtype)
        numbers = [n for pair in equal for n in pair]
        return self.bind(relax.call_tir(guard, relax.Tuple([tensor, *numbers]), ty), ty)

    def possible(self, extents: relax.Expr, count: int) -> relax.Expr:
        """Extents, as a tensor of so many, that a tensor can have."""
        told = "the data say a shape that no tensor can have: an extent below 0, or too many elements"
        message = f"{DATA_MARK}{told}{origin(self._func, *(() if self.call is None else self.call.args))}"
        guard = self._function("extent_guard", extent_guard(count, message))
        ty = relax.TensorType([count], "int64")
        return self.bind(relax.call_tir(guard, relax.Tuple([extents]), ty), ty)

    def steps(self, steps: relax.Expr, count: int) -> relax.Expr:
        """Steps of a slice, as a tensor of so many, none of which is 0; as they are where no input decides them."""
        call = self.call
        assert call is not None
        told = origin(self._func, call.args[-1])
        if not told:
            return steps
        guard = self._function("step_guard", step_guard(count, f"{DATA_MARK}{operator_of(call)} got a step of 0{told}"))
        ty = relax.TensorType([count], "int64")
        return self.bind(relax.call_tir(guard, relax.Tuple([steps]), ty), ty)

    def _function(self, name: str, func: tirx.PrimFunc) -> GlobalVar:
        self.changes += 1
        return add_function(self._mod, name, func)

    def named_shape(self, shape: relax.Expr) -> tuple[relax.Expr, Sizes]:
        """A shape and its extents, which get names where they had none."""
        if isinstance(shape, relax.ShapeExpr):
            return shape, list(shape)
        ty = shape.ty if shape.ty.values is not None else relax.ShapeType(_names(shape.ty.ndim))
        return shape if ty is shape.ty else self._name(shape, ty), list(ty.values)

    def computed_shape(self, shape: relax.ShapeExpr) -> relax.ShapeExpr:
        """A shape with names for its extents, of which a kernel's interface would compute quotients, also by 0."""
        numbers = self.bind(relax.op.shape_to_tensor(shape), relax.TensorType((len(shape),), "int64"))
        computed = self.bind(relax.op.tensor_to_shape(numbers), relax.ShapeType(ndim=len(shape)))
        return relax.ShapeExpr(self.named_shape(computed)[1])

    def bind(self, value: relax.Expr, ty: relax.Type) -> relax.Expr:
        """A variable for a value."""
        var = self.kind("fitting", ty)
        self.made.append(relax.VarBinding(var, typed(value, ty)))
        return var

    def _name(self, value: relax.Expr, ty: relax.Type) -> relax.Expr:
        var = self.kind("sized", ty)
        self.changes += 1
        self.made.append(relax.MatchCast(var, value, ty))
        return var

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two extents are surely equal."""
        return bool(tvm_ffi.structural_equal(a, b) or self._analyzer.can_prove_equal(a, b))


def _names(count: int) -> Sizes:
    return [tirx.Var(f"size{axis}", "int64") for axis in range(count)]


def is_known(size: Any) -> bool:
    """Whether an extent is a number."""
    return isinstance(size, tirx.IntImm)
