"""Operators that go straight to Relax, since no others of ONNX say what they do, or TVM's converter is wrong."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from tvm import relax, te, tirx, topi
from tvm.ir import Constant
from tvm.relax.frontend.onnx.onnx_frontend import (
    Einsum,
    MatMulInteger,
    Max,
    Mean,
    Min,
    MultiInputBase,
    Pad,
    Sum,
    onnx_input,
)

from ..bindings import dtype_of, static_shape
from ..passes.legalization.pads import mirrored
from ..passes.legalization.suppression import Suppression
from .control.functions import first_rows
from .data_sizes.names import shape_with_names
from .data_sizes.pad import pad_by_data
from .data_sizes.places import cut, scatter_nd
from .data_sizes.reduce import REDUCTIONS
from .data_sizes.resize import resize
from .data_sizes.shapes import expand, reshape, squeeze, tile
from .data_sizes.split import split
from .data_sizes.top_k import top_k
from .emit import largest


def _bit_cast(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """The same bits as another type of the same width."""
    dtype = str(helper.tensor_dtype_to_np_dtype(attributes["to"]))
    source = str(inputs[0].ty.dtype)
    if dtype == source:
        return inputs[0]
    narrow = {"bool": "uint8"}

    def element(value: Any) -> Any:
        value = value.astype("uint8") if source == "bool" else value
        if narrow.get(source, source) == dtype:
            return value
        return value.astype("bool") if dtype == "bool" else tirx.reinterpret(dtype, value)

    def bitcast(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: element(x(*i)), name="bitcast")

    return bb.emit_te(bitcast, inputs[0])


def _clip(bb: relax.BlockBuilder, inputs: Sequence[Any], _attributes: dict[str, Any]) -> relax.Expr:
    """Two choices; a bound that is NaN is none. TVM's converter looks for it with operators, in known bounds, too.

    A bound that is not given is the least or the largest number there is by ONNX: infinities are beyond it.
    """
    value, dtype = inputs[0], dtype_of(inputs[0].ty)
    real = dtype.startswith(("float", "bfloat"))
    bounds = (*inputs[1:3], None, None)[:2]
    for bound, choose, sign in zip(bounds, (relax.op.maximum, relax.op.minimum), (-1, 1), strict=True):
        if bound is None and real:
            bound = relax.const(sign * largest(dtype), dtype)
        if bound is None or (isinstance(bound, Constant) and np.isnan(bound.value.numpy()).any()):
            continue
        if not isinstance(bound, Constant) and real:
            bound = bb.emit(relax.op.where(relax.op.isnan(bound), relax.const(sign * math.inf, dtype), bound))
        value = bb.emit(choose(value, bound))
    return value


def _cum_prod(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Products along an axis."""
    axis = int(inputs[1].value.numpy().item())
    value, backward = inputs[0], bool(attributes.get("reverse", 0))
    if backward:
        value = bb.emit(relax.op.flip(value, axis))
    value = relax.op.cumprod(value, axis, exclusive=bool(attributes.get("exclusive", 0)))
    return relax.op.flip(bb.emit(value), axis) if backward else value


def _matmul_integer(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """Unsigned bytes times signed ones stay bytes; TVM's converter, which has the others, makes int32 of them."""
    types, zeros = [str(value.ty.dtype) for value in inputs[:2]], [value for value in inputs[2:] if value is not None]
    if types == ["uint8", "int8"] and not zeros:
        return relax.op.matmul(inputs[0], inputs[1], out_dtype="int32")
    left, right = (value.ty.ndim == 1 for value in inputs[:2])
    matrices = list(inputs)
    for number, vector in enumerate((left, right)):  # a row on the left, a column on the right
        if vector:
            matrices[number] = bb.emit(relax.op.expand_dims(matrices[number], [number]))
    product = MatMulInteger._impl_v10(bb, matrices, attributes, [{}, {}])
    added = [axis for axis, vector in ((-2, left), (-1, right)) if vector]
    return relax.op.squeeze(bb.emit(product), added) if added else product


def _non_max_suppression(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """As many boxes as there are. By the type of TVM's operator it is the most that may be, and readers rely on it."""
    defaults = (relax.const(n, t) for n, t in ((0, "int64"), (0.0, "float32"), (-math.inf, "float32")))
    given = zip([*inputs[2:5], None, None, None], defaults, strict=False)
    limits = [default if number is None else number for number, default in given]
    most = int(limits[0].value.numpy().item()) if isinstance(limits[0], Constant) else np.iinfo(np.int64).max
    boxes, scores = _candidates(bb, inputs[0], inputs[1])
    if attributes.get("center_point_box", 0):
        x, y, width, height = (bb.emit(relax.op.strided_slice(boxes, [2], [i], [i + 1])) for i in range(4))
        half = relax.const(0.5, "float32")
        half_width, half_height = (bb.emit(relax.op.multiply(size, half)) for size in (width, height))
        low, high = (
            [choose(y, half_height), choose(x, half_width)] for choose in (relax.op.subtract, relax.op.add)
        )  # fmt: skip
        boxes = bb.emit(relax.op.concat([*low, *high], axis=2))
    batch, classes, number = (int(size) if isinstance(size, tirx.IntImm) else size for size in scores.ty.shape)
    suppression = Suppression(batch, classes, number, most)
    function = bb.add_func(suppression.function(), "non_max_suppression")
    results = [relax.TensorType((suppression.room, 3), "int64"), relax.TensorType((1,), "int64")]
    vectors = [bb.emit(relax.op.reshape(limit, (1,))) for limit in limits]
    found = bb.emit(relax.call_tir(function, (boxes, scores, *vectors), results))
    return first_rows(bb, bb.emit(relax.TupleGetItem(found, 0)), bb.emit(relax.TupleGetItem(found, 1)))


def _candidates(bb: relax.BlockBuilder, *values: relax.Expr) -> Iterator[relax.Expr]:
    """Boxes (batch, n, 4) and scores (batch, classes, n); a size that only the data know gets a name."""
    batch, classes, number = (tirx.Var(name, "int64") for name in ("batch", "classes", "boxes"))
    for value, sizes in zip(values, ((batch, number, tirx.IntImm("int64", 4)), (batch, classes, number)), strict=True):
        if value.ty.shape is None:
            value = bb.match_cast(value, relax.TensorType(sizes, value.ty.dtype))
        yield value


def _pad(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """What is less than nothing is cut off before edges are added; TVM's converter adds what lies there."""
    mode, data = attributes.get("mode", b"constant"), inputs[0]
    constants: list[dict[str, Any]] = [{}, {}]
    if data.ty.shape is None and data.ty.ndim >= 0:
        sizes = [tirx.Var(f"n{axis}", "int64") for axis in range(data.ty.ndim)]
        data = bb.match_cast(data, relax.TensorType(sizes, data.ty.dtype))
    fill = [*inputs, None, None][2]
    if "pads" not in attributes and not isinstance(inputs[1], Constant):
        return pad_by_data(bb, data, inputs[1], _axes_of_pad(inputs, data.ty.ndim), attributes, fill)
    computed = mode == b"constant" and fill is not None and not isinstance(fill, Constant)
    if mode == b"constant" and not computed:
        convert = Pad._impl_v2 if "pads" in attributes else Pad._impl_v19
        return convert(bb, onnx_input([data, *list(inputs)[1:]]), attributes, constants)
    if "pads" in attributes:
        before, after = (half.tolist() for half in np.split(np.array(attributes["pads"]), 2))
    else:
        before, after, _ = Pad._parse_pads_and_axes(onnx_input([*inputs[:2], None, *inputs[3:]]), constants)
    axes = list(range(len(before)))
    if min(*before, *after) < 0:
        ends = [-cut if cut > 0 else np.iinfo(np.int64).max for cut in _negative(after)]
        data = bb.emit(relax.op.strided_slice(data, axes, _negative(before), ends))
    for size, grown in zip(data.ty.shape, np.maximum(before, 0) + np.maximum(after, 0), strict=True):
        if grown and isinstance(size, tirx.IntImm) and not int(size) and not computed:
            raise ValueError("there is nothing that an edge could be made of")
    added = [[max(0, int(n)) for n in numbers] for numbers in (before, after)]
    if computed:
        return bb.emit_te(lambda x, value: topi.nn.pad(x, *added, value(*[0] * len(value.shape))), data, fill)
    edge = {b"reflect": mirrored, b"wrap": topi.nn.circular_pad, b"edge": topi.nn.replicate_pad}[mode]
    return bb.emit_te(edge, data, *added)


def _axes_of_pad(inputs: Sequence[Any], rank: int) -> list[int]:
    axes = [*inputs, None, None][3]
    if not isinstance(axes, Constant | None):
        raise ValueError("its axes are computed")
    return list(range(rank)) if axes is None else [int(axis) % rank for axis in axes.value.numpy()]


def _einsum(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
    """As an operator of Relax where only the data say how large something is, for then sizes have to be compared."""
    if all(static_shape(value.ty) is not None for value in inputs):
        return Einsum._impl_v12(bb, inputs, attributes, [{}, {}])
    return relax.op.einsum(relax.Tuple(list(inputs)), attributes["equation"].decode())


def _one_by_one(own: type[MultiInputBase]) -> "Converter":
    """A converter of an operator of any number of tensors, of which TVM's compares sizes that it cannot know."""

    def convert(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: dict[str, Any]) -> relax.Expr:
        if all(static_shape(value.ty) is not None for value in inputs):
            return own._impl_v1(bb, onnx_input(list(inputs)), attributes, [{}, {}])
        return own._impl_dynamic(bb, list(inputs))

    return convert


def _negative(widths: Sequence[int]) -> list[int]:
    return [max(0, -int(width)) for width in widths]


def _boxes_of_images(bb: relax.BlockBuilder, inputs: Sequence[Any]) -> list[Any]:
    """Inputs of RoiAlign, whose boxes and numbers of images are as many: one name for that where the data decide it."""
    data, boxes, images = inputs
    if static_shape(boxes.ty) is not None and static_shape(images.ty) is not None:
        return list(inputs)
    number = tirx.Var("boxes", "int64")
    boxes = bb.match_cast(boxes, relax.TensorType((number, tirx.IntImm("int64", 4)), boxes.ty.dtype))
    return [data, boxes, bb.match_cast(images, relax.TensorType((number,), images.ty.dtype))]


def _sequence_insert(_bb: relax.BlockBuilder, inputs: Sequence[Any], _attributes: dict[str, Any]) -> relax.Expr:
    """A negative position counts from the last, before which it inserts."""
    items = list(inputs[0])
    place = int(inputs[2].value.numpy().item()) if len(inputs) > 2 and inputs[2] is not None else len(items)
    if not -len(items) <= place <= len(items):
        raise ValueError(f"position {place} in a sequence of {len(items)}")
    items.insert(place, inputs[1])
    return relax.Tuple(items)


PREPARED: dict[str, Callable[[relax.BlockBuilder, Sequence[Any]], list[Any]]] = {
    "ConstantOfShape": shape_with_names,
    "RoiAlign": _boxes_of_images,
}
"""What TVM's converter of an operator is given in the place of its inputs, by the operator's name."""

Converter = Callable[[relax.BlockBuilder, Sequence[Any], dict[str, Any]], relax.Expr]

CONVERTERS: dict[str, Converter] = {
    "BitCast": _bit_cast,
    "Clip": _clip,
    "CumProd": _cum_prod,
    "Einsum": _einsum,
    "Expand": expand,
    "MatMulInteger": _matmul_integer,
    "Max": _one_by_one(Max),
    "Mean": _one_by_one(Mean),
    "Min": _one_by_one(Min),
    "NonMaxSuppression": _non_max_suppression,
    "Pad": _pad,
    "Reshape": reshape,
    "Resize": resize,
    "ScatterND": scatter_nd,
    "SequenceInsert": _sequence_insert,
    "Slice": cut,
    "Split": split,
    "Squeeze": squeeze,
    "Sum": _one_by_one(Sum),
    "Tile": tile,
    "TopK": top_k,
    **REDUCTIONS,
}
"""By the name of one of ONNX's own operators."""


def has_own(node: onnx.NodeProto) -> bool:
    """Whether a node's operator goes to Relax by a converter of ours."""
    return node.domain in ("", "ai.onnx") and node.op_type in CONVERTERS
