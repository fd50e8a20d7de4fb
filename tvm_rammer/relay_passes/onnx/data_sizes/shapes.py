"""Other shapes of the same elements, or of copies of them, that only the data say.

Each takes what a converter of TVM's frontend takes: a block builder, the node's inputs, and its attributes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax, tirx
from tvm.ir import Constant
from tvm.relax.frontend.onnx.onnx_frontend import Expand, Reshape, Squeeze, Tile, onnx_input

from ...bindings import static_shape
from .guards import resized
from .names import computed, shape_with_names


def expand(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """To a shape that only the data say, which TVM's converter takes by an impure call, and not of fewer axes."""
    data, shape = inputs
    if isinstance(shape, Constant) and isinstance(data.ty.shape, relax.ShapeExpr) and static_shape(data.ty) is None:
        return _known_extents(data, shape.value.numpy().tolist())
    (named,) = shape_with_names(bb, [shape])
    if named is shape or not isinstance(data.ty.shape, relax.ShapeExpr):
        return Expand._impl_v13(bb, onnx_input(list(inputs)), attributes, [{}, {}])
    before = list(data.ty.shape)[: max(0, data.ty.ndim - len(named))]
    return relax.op.broadcast_to(data, relax.ShapeExpr([*before, *named]))


def _known_extents(data: relax.Expr, target: list[int]) -> relax.Expr:
    """Expand to extents that are known what has some that only the data say: those may turn out to be 1."""
    sizes = list(data.ty.shape)
    count = max(len(sizes), len(target))
    before, target = [1] * (count - len(sizes)) + sizes, [1] * (count - len(target)) + target
    if any(
        not isinstance(size, int | tirx.IntImm) and wanted != 1 for size, wanted in zip(before, target, strict=True)
    ):
        everywhere = relax.op.full(target, relax.const(True, "bool"), "bool")
        return relax.op.where(everywhere, data, data)
    made = [size if wanted == 1 else wanted for size, wanted in zip(before, target, strict=True)]
    return relax.op.broadcast_to(data, relax.ShapeExpr(made))


def reshape(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """To a shape that only the data say: 0 stands for the extent that is there, -1 for what is left."""
    data, shape = inputs
    count = computed(shape)
    if count is None or not isinstance(data.ty, relax.TensorType) or data.ty.shape is None:
        return Reshape._impl_v13(bb, onnx_input(list(inputs)), attributes, [{}, {}])
    op = relax.op
    zero, one, rest = (relax.const(n, "int64") for n in (0, 1, -1))
    sizes = bb.emit(op.shape_to_tensor(data.ty.shape))
    if not attributes.get("allowzero", 0):
        missing = relax.const(np.zeros(max(0, count - data.ty.ndim), np.int64), "int64")
        there = bb.emit(op.strided_slice(op.concat([sizes, missing]), axes=[0], begin=[0], end=[count]))
        shape = bb.emit(op.where(op.equal(shape, zero), there, shape))
    is_rest = bb.emit(op.equal(shape, rest))
    known = bb.emit(op.where(is_rest, one, shape))
    left = op.floor_divide(op.prod(sizes), op.prod(known))
    (named,) = shape_with_names(bb, [bb.emit(op.where(is_rest, left, known))])
    return op.reshape(data, named)


def squeeze(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Also of axes as large as only the data say: as a reshape, whose elements are counted when it runs."""
    data, axes = inputs[0], attributes.get("axes")
    convert = Squeeze._impl_v13 if len(inputs) > 1 else Squeeze._impl_v1
    if len(inputs) > 1 and isinstance(inputs[1], Constant):
        axes = inputs[1].value.numpy().tolist()
    if axes is not None and isinstance(data.ty, relax.TensorType) and isinstance(data.ty.shape, relax.ShapeExpr):
        gone = {axis % data.ty.ndim for axis in axes}
        if any(not isinstance(data.ty.shape[axis], tirx.IntImm) for axis in gone):
            kept = [size for axis, size in enumerate(data.ty.shape) if axis not in gone]
            return resized(bb, data, kept, attributes, "got an axis that does not have one element")
    return convert(bb, onnx_input(list(inputs)), attributes, [{}, {}])


def tile(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """As often as only the data say: each axis has another one before it, along which its elements are the same."""
    data, repeats = inputs
    if computed(repeats) is None or not isinstance(data.ty.shape, relax.ShapeExpr):
        return Tile._impl_v13(bb, list(inputs), attributes, [{}, {}])
    (named,), sizes = shape_with_names(bb, [repeats]), list(data.ty.shape)
    if len(named) != len(sizes):
        raise ValueError(f"{len(named)} repeats for {len(sizes)} axes")
    apart = relax.op.reshape(data, [n for size in sizes for n in (1, size)])
    every = relax.op.broadcast_to(apart, relax.ShapeExpr([n for pair in zip(named, sizes, strict=True) for n in pair]))
    return relax.op.reshape(every, [a * b for a, b in zip(named, sizes, strict=True)])
