"""Split into parts whose sizes only the data say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Constant
from tvm.relax.frontend.onnx.onnx_frontend import Split, onnx_input

from ...passes.indices.index_guard import Relation
from .guards import related, resized
from .names import computed, entries, named_extents


def split(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Convert a Split; where its sizes are computed, that they are those of the axis is checked when it runs.

    Parameters
    ----------
    bb : relax.BlockBuilder
    inputs : sequence
        The tensor, and the sizes of its parts, if they are an input.
    attributes : dict
        With these sizes, if a file before opset 13 has them.

    Returns
    -------
    relax.Expr
        A tuple of the parts.
    """
    data, sizes = (*inputs, None)[:2]
    if sizes is None and "split" in attributes:  # before opset 13
        sizes = relax.const(np.array(attributes["split"], np.int64))
    count = computed(sizes) if sizes is not None else None
    what = "got sizes of parts that do not make up its axis"
    if isinstance(sizes, Constant) and isinstance(data.ty.shape, relax.ShapeExpr):
        axis, shape = attributes.get("axis", 0) % data.ty.ndim, list(data.ty.shape)
        if not isinstance(shape[axis], tirx.IntImm):
            shape[axis] = int(sizes.value.numpy().sum())
            data = resized(bb, data, shape, attributes, what)
    if count is None:
        return Split._impl_v13(bb, onnx_input([data, sizes]), attributes, [{}, {}])
    axis = attributes.get("axis", 0) % data.ty.ndim
    known = entries(bb, sizes, count)
    (total,) = named_extents(bb, bb.emit(relax.op.sum(sizes, [0], keepdims=True)), [None])
    sizes = related(bb, sizes, [(total, data.ty.shape[axis])], Relation.EQUAL, attributes, what)
    parts: list[relax.Expr] = []
    begin: tirx.Expr = tirx.const(0, "int64")
    for place in range(count):
        one = bb.emit(relax.op.strided_slice(sizes, [0], [place], [place + 1]))
        (size,) = named_extents(bb, one, known[place : place + 1])
        parts.append(bb.emit_te(_part, data, axis, begin, size))
        begin = begin + size
    return relax.Tuple(parts)


def _part(data: te.Tensor, axis: int, begin: tirx.Expr, size: tirx.Expr) -> te.Tensor:
    """So many elements of an axis, from a place on."""
    shape = [*data.shape[:axis], size, *data.shape[axis + 1 :]]
    return te.compute(shape, lambda *at: data(*at[:axis], at[axis] + begin, *at[axis + 1 :]), name="part")
