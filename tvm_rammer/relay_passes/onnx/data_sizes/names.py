"""Names for sizes that only the data say, as TVM's frontend is run."""

from collections.abc import Sequence
from typing import Any

from tvm import relax, tirx
from tvm.ir import Constant

from ...bindings import static_shape


def computed(shape: Any) -> int | None:
    """How many extents, or numbers for each axis, a tensor has whose values only run time knows; None for others."""
    length = None if isinstance(shape, Constant | relax.ShapeExpr) else static_shape(shape.ty)
    return length[0] if length else None


def shape_with_names(bb: relax.BlockBuilder, inputs: Sequence[Any]) -> list[Any]:
    """A shape that only the data say, with names for its extents; any other as it is."""
    (shape,) = inputs
    count = computed(shape)
    if count is None:
        return [shape]
    names = [tirx.Var(f"extent{axis}", "int64") for axis in range(count)]
    bb.match_cast(bb.emit(relax.op.tensor_to_shape(shape)), relax.ShapeType(names))
    return [relax.ShapeExpr(names)]
