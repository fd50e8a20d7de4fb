"""Which operands of an operator hold indices, and of what: by the operator."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm import relax, tirx
from tvm.ir import Call, Op

from ....errors import ModelError

Size: TypeAlias = Any
"""An extent, or a bound: an int, or an expression of tirx where only run time knows it."""


@dataclass(frozen=True, slots=True)
class Use:
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
    columns : int, optional
        Of so many columns the first one has the indices, where the operand is a matrix of other numbers, too.
    ignored : int, optional
        A value that is no index, and is allowed.
    """

    operand: int
    lowest: tuple[Size, ...]
    highest: tuple[Size, ...]
    field: int | None = None
    fits: tuple[tuple[Size, Size], ...] = ()
    columns: int | None = None
    ignored: int | None = None

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known, and there is an index that is allowed."""
        sizes = (*self.lowest, *self.highest, *(size for pair in self.fits for size in pair))
        return all(isinstance(size, int) for size in sizes) and all(map(int.__le__, self.lowest, self.highest))

    def of(self, arguments: Sequence[relax.Expr]) -> relax.Expr:
        """The operand with the indices among the arguments of a call."""
        return arguments[self.operand] if self.field is None else arguments[self.operand].fields[self.field]

    def put(self, arguments: list[relax.Expr], indices: relax.Expr) -> None:
        """Give a call another such operand."""
        if self.field is not None:
            fields = list(arguments[self.operand].fields)
            fields[self.field] = indices
            indices = relax.Tuple(fields)
        arguments[self.operand] = indices


_Shape: TypeAlias = tuple[Size, ...]
_Finder = Callable[[Call, Sequence[_Shape]], list[Use]]
"""The uses of a call, given the shapes of the tensor, of its indices, and of what else it takes."""


def takes_indices(value: relax.Expr) -> bool:
    """Whether it is a call of such an operator."""
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in (*_FINDERS, *_BY_TENSORS)


def uses_of(call: Call, arguments: Sequence[relax.Expr]) -> list[Use]:
    """The operands of an operator that hold indices, given its arguments with what is known of their sizes."""
    if not takes_indices(call):
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


def _each_axis(arguments: Sequence[relax.Expr]) -> list[Use]:
    data, indices = _extents(arguments[0].ty), arguments[1]
    if data is None or not isinstance(indices, relax.Tuple):
        return []
    known = [(i, _extents(field.ty)) for i, field in enumerate(indices.fields)]
    return [Use(1, (0,), (data[i] - 1,), i) for i, shape in known if shape is not None and not _has_none(shape)]


def _take(call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    if call.attrs.mode != "fast":
        return []
    size = math.prod(shapes[0]) if call.attrs.axis is None else shapes[0][int(call.attrs.axis)]
    return [Use(1, (0,), (size - 1,))]


def _elements(call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    """Each index has a place on the other axes, too, and in a scatter an update."""
    data, indices, *updates = shapes
    axis = int(call.attrs.axis) % len(data)
    fits = _fits(indices[:axis] + indices[axis + 1 :], data[:axis] + data[axis + 1 :])
    return [
        Use(1, (-data[axis] if updates else 0,), (data[axis] - 1,), fits=fits + _fits(indices, *updates or [indices]))
    ]


def _gather_nd(call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    data, indices = shapes
    batch = int(call.attrs.batch_dims)
    return _coordinates(data[batch:], indices, _fits(indices[:batch], data[:batch]))


def _scatter_nd(_call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    data, indices, updates = shapes
    written = (*indices[:-1], *data[indices[-1] :]) if isinstance(indices[-1], int) else updates
    return _coordinates(data, indices, _fits(written, updates))


def _coordinates(data: _Shape, indices: _Shape, fits: tuple[tuple[Size, Size], ...]) -> list[Use]:
    if not isinstance(indices[-1], int):
        raise ModelError("a gather or scatter by coordinates does not know of how many numbers each is; give its shape")
    extents = data[: indices[-1]]
    return [Use(1, (0,) * len(extents), tuple(n - 1 for n in extents), fits=fits)]


def _boxes(call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    """Each box begins with the number of its image."""
    return [Use(1, (0,), (shapes[0][str(call.attrs.layout).index("N")] - 1,), columns=5)]


def _targets(call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    predictions = shapes[0]
    return [Use(1, (0,), (predictions[min(1, len(predictions) - 1)] - 1,), ignored=int(call.attrs.ignore_index))]


def _rows(_call: Call, shapes: Sequence[_Shape]) -> list[Use]:
    """Of each sample the distribution that it is drawn from."""
    return [Use(2, (0,), (shapes[0][0] - 1,))]


_FINDERS: Mapping[str, _Finder] = {
    "relax.take": _take,
    "relax.gather_elements": _elements,
    "relax.scatter_elements": _elements,
    "relax.gather_nd": _gather_nd,
    "relax.scatter_nd": _scatter_nd,
    "relax.vision.roi_align": _boxes,
    "relax.vision.roi_pool": _boxes,
    "relax.nn.nll_loss": _targets,
    "relax.multinomial_from_uniform": _rows,
}
