"""Names for sizes that only the data say, as TVM's frontend is run."""

from collections.abc import Sequence
from typing import Any

from tvm import relax, tirx
from tvm.ir import Call, Constant

from ...bindings import is_call, static_shape

DESCRIBED = "described"
"""Among the attributes that a converter gets: its node, for messages."""


def computed(shape: Any) -> int | None:
    """How many extents, or numbers for each axis, a tensor has whose values only run time knows; None for others."""
    length = None if isinstance(shape, Constant | relax.ShapeExpr) else static_shape(shape.ty)
    return length[0] if length else None


def shape_with_names(bb: relax.BlockBuilder, inputs: Sequence[Any]) -> list[Any]:
    """A shape that only the data say, with names for its extents, but for those that are known; others as they are."""
    (shape,) = inputs
    count = computed(shape)
    return [shape] if count is None else [relax.ShapeExpr(named_extents(bb, shape, entries(bb, shape, count)))]


def named_extents(bb: relax.BlockBuilder, shape: relax.Expr, known: Sequence[Any]) -> list[Any]:
    """Extents of a shape, as a tensor: names for those that are not known. That a tensor can have them is checked.

    Parameters
    ----------
    bb : relax.BlockBuilder
    shape : relax.Expr
        A vector of int64.
    known : sequence of int, tirx.Expr or None
        Of each extent, what is known of it ahead.
    """
    names = [tirx.Var(f"extent{axis}", "int64") for axis in range(len(known))]
    bb.match_cast(bb.emit(relax.op.tensor_to_shape(shape)), relax.ShapeType(names))
    return [_known(extent) or name for name, extent in zip(names, known, strict=True)]


def _known(extent: Any) -> tirx.Expr | None:
    """What is known of an extent; one that no tensor can have is left to those who look at the data."""
    if isinstance(extent, int):
        return tirx.IntImm("int64", extent) if extent >= 0 else None
    return extent if isinstance(extent, tirx.Expr) else None


def entries(bb: relax.BlockBuilder, vector: Any, count: int) -> list[Any]:
    """The numbers in a vector, as far as they are known ahead: numbers of Python, extents, or None.

    Parameters
    ----------
    bb : relax.BlockBuilder
    vector : relax.Expr
        Of so many numbers.
    count : int
    """
    if isinstance(vector, Constant):
        return list(vector.value.numpy().ravel().tolist())
    if isinstance(vector, relax.ShapeExpr):
        return [int(size) if isinstance(size, tirx.IntImm) else size for size in vector]
    value = bb.lookup_binding(vector) if isinstance(vector, relax.Var) else vector
    found: list[Any] = []
    if is_call(value, ("relax.shape_to_tensor",)):
        found = entries(bb, value.args[0], count)
    elif is_call(value, ("relax.concat",)) and isinstance(value.args[0], relax.Tuple):
        for part in value.args[0].fields:
            length = static_shape(part.ty)
            found += entries(bb, part, length[0]) if length else []
    elif isinstance(value, relax.Var) and not value.same_as(vector):
        found = entries(bb, value, count)
    return found if len(found) == count else [None] * count


def vector_of(extents: Sequence[Any]) -> Call:
    """Extents as a vector of int64."""
    return relax.op.shape_to_tensor(relax.ShapeExpr(list(extents)))
