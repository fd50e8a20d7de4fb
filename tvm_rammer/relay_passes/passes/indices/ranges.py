"""Between which numbers integers are, as far as constants say: indices that a table holds need no check.

So of trees of decisions, each of which says at which node to go on, only the first looks for what is outside.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from tvm import relax
from tvm.ir import Call, Constant, Op, Tuple

from ...bindings import dtype_of, is_call, static_shape

Range: TypeAlias = tuple[int, int]
"""The smallest number that it may be, and the largest; of truth values, 0 and 1."""


MOST_ELEMENTS = 1 << 22
"""Of a constant that is looked at: larger ones are weights."""


class Ranges:
    """What is known of the integers and truth values of a function."""

    def __init__(self) -> None:
        self._found: dict[relax.Var, Range] = {}
        self._same: dict[relax.Var, relax.Expr] = {}

    def add(self, binding: relax.Binding) -> None:
        """Learn from a binding; they come in their order."""
        if not isinstance(binding, relax.VarBinding) or not _is_whole(binding.var):
            return
        value = binding.value
        if is_call(value, ("relax.where",)) and (chosen := self.of(value.args[0])) in ((0, 0), (1, 1)):
            value = value.args[1 if chosen == (1, 1) else 2]
            if _alike(value, binding.var):
                self._same[binding.var] = self.simplest(value)
        if (found := self.of(value)) is not None:
            self._found[binding.var] = found

    def simplest(self, expr: relax.Expr) -> relax.Expr:
        """What an expression is the same as: what a choice by a known truth value chooses."""
        return self._same.get(expr, expr) if isinstance(expr, relax.Var) else expr

    def of(self, expr: relax.Expr) -> Range | None:
        """The range of a tensor; None where it is not known, or where the tensor has no elements."""
        if isinstance(expr, relax.Var):
            return self._found.get(expr)
        if isinstance(expr, Constant):
            size = math.prod(expr.value.shape)
            if not _is_whole(expr) or not 0 < size <= MOST_ELEMENTS:
                return None
            array = expr.value.numpy()
            return int(array.min()), int(array.max())
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        name = expr.op.name.removeprefix("relax.")
        if name in _PLACES:
            return _places(expr)
        if name in ("concat", "stack"):
            fields = expr.args[0].fields if isinstance(expr.args[0], Tuple) else []
            return _union([self.of(field) for field in fields])
        if name == "where":
            return _union([self.of(arg) for arg in expr.args[1:]])
        if name == "astype" or name in _MOVES:
            return _held(self.of(expr.args[0]), expr)
        if name in _PAIRS:
            left, right = self.of(expr.args[0]), self.of(expr.args[1])
            return _held(_PAIRS[name](left, right), expr) if left is not None and right is not None else None
        return None


def _less(left: Range, right: Range) -> Range:
    """Whether something is less."""
    return (int(left[1] < right[0]), int(left[0] < right[1]))


def _less_equal(left: Range, right: Range) -> Range:
    return (int(left[1] <= right[0]), int(left[0] <= right[1]))


def _products(left: Range, right: Range) -> Range:
    ends = [a * b for a in left for b in right]
    return min(ends), max(ends)


_PAIRS: Mapping[str, Callable[[Range, Range], Range]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _products,
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda a, b: _less(b, a),
    "greater_equal": lambda a, b: _less_equal(b, a),
}
_MOVES = frozenset(
    ["broadcast_to", "expand_dims", "flatten", "flip", "gather_elements", "gather_nd", "permute_dims", "repeat",
     "reshape", "squeeze", "strided_slice", "take", "tile"]
)  # fmt: skip
"""Operators whose results are elements of their first operand."""
_PLACES = frozenset(["argmax", "argmin"])


def _places(call: Call) -> Range | None:
    """The places along an axis."""
    shape, axis = static_shape(call.args[0].ty), call.attrs.axis
    if shape is None or axis is None or not shape[int(axis)]:
        return None
    return 0, shape[int(axis)] - 1


def _union(ranges: list[Range | None]) -> Range | None:
    known = [found for found in ranges if found is not None]
    if not known or len(known) < len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _held(found: Range | None, call: Call) -> Range | None:
    """A range, if the type of a result has all of it; otherwise numbers go round."""
    if found is None or not _is_whole(call):
        return None
    dtype = dtype_of(call.ty)
    limits = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return found if limits[0] <= found[0] and found[1] <= limits[1] else None


def _is_whole(expr: relax.Expr) -> bool:
    """Whether an expression is a tensor of integers or truth values that NumPy has."""
    if not isinstance(expr.ty, relax.TensorType):
        return False
    dtype = dtype_of(expr.ty)
    return dtype == "bool" or (dtype.startswith(("int", "uint")) and hasattr(np, dtype))


def _alike(value: relax.Expr, var: relax.Var) -> bool:
    """Whether two tensors have the same type and static shape."""
    shape = static_shape(value.ty)
    return shape is not None and shape == static_shape(var.ty) and dtype_of(value.ty) == dtype_of(var.ty)
