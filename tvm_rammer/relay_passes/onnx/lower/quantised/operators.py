"""Integer products and quantised operators by others: ONNX's own, and those of ONNX Runtime's quantiser.

The product of bytes with a constant matrix of bytes stays one: a MatMulInteger of unsigned with signed ones and without
zero points, for which there are kernels, and what the zero points add to it.

All else is in floating point. Sums of products of 8-bit numbers are exact in float32 up to 2**24. Where weights may
lead beyond and the result is an integer, they are cut into two parts, whose sums stay below with any 4,096 terms;
longer sums are made in float64. Quantised results are rounded anyway.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from ...emit import Emitter, NodeView
from .channels_last import channels_second
from .values import MOST_TERMS, Quantised

_MOST = 255
"""The largest difference of an 8-bit number and its zero point."""
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")


def _worst(
    node: NodeView, weights: int, zero: int, shape: Sequence[int], summed: Callable[[int], Sequence[int]]
) -> float:
    """The largest sum of products with weights; infinite if they are not known.

    Parameters
    ----------
    weights, zero : int
        Positions of the inputs.
    shape : sequence of int
        Of zero points that are one for each channel.
    summed : callable
        The axes that are summed over, by the weights' rank.
    """
    array, offset = node.array(weights), node.array(zero)
    if array is None or (node.input(zero) and offset is None):
        return float("inf")
    numbers = array.astype(np.int64)
    if offset is not None:
        numbers = numbers - (offset.reshape(shape) if offset.ndim == 1 else offset)
    return float(_MOST * np.abs(numbers).sum(axis=tuple(summed(numbers.ndim))).max(initial=0))


def _conv_integer(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, given, q = node.dims(1), node.given(_CONV), Quantised(node, emit)
    if found := q.windows((0, 2), (1, 3)):
        return q.give(q.channels_second(*found))
    if dims is None:
        return None
    channels = [-1] + [1] * (len(dims) - 1)
    data, weights = q.number(0, 2), q.number(1, 3, channels)
    worst = _worst(node, 1, 3, channels, lambda rank: range(1, rank))
    terms = math.prod(dims[1:])
    return q.give(*q.whole(lambda d, w: emit("Conv", d, w, **given), data, weights, worst, terms))


def _integer_matmul(node: NodeView, emit: Emitter, zero: int) -> tuple[str, str]:
    """The exact product of the first two inputs, as int32 and as float32; `zero`: where the first zero point is."""
    q = Quantised(node, emit)
    if product := q.product((0, zero), (1, zero + 1)):
        return product, emit("Cast", product, to=TensorProto.FLOAT)
    data, weights = q.number(0, zero, (-1, 1)), q.number(1, zero + 1)
    worst = _worst(node, 1, zero + 1, (-1,), lambda rank: [max(0, rank - 2)])
    terms = (node.dims(1) or [MOST_TERMS + 1])[-2:][0]
    return q.whole(lambda d, w: emit("MatMul", d, w), data, weights, worst, terms)


def _matmul_integer(node: NodeView, emit: Emitter) -> Emitter | None:
    weights = node.array(1)
    if weights is None or _is_plain(node, weights):
        return None  # the converters have it, in integers
    return Quantised(node, emit).give(*_integer_matmul(node, emit, 2))


def _is_plain(node: NodeView, weights: np.ndarray) -> bool:
    """Whether it is a product that `Quantised.product` makes."""
    kind = node.types.get(node.input(0))
    unsigned = kind is not None and kind.elem_type == TensorProto.UINT8
    return unsigned and weights.dtype == np.int8 and weights.ndim == 2 and not node.input(2) and not node.input(3)


def _matmul_integer_to_float(node: NodeView, emit: Emitter) -> Emitter | None:
    q = Quantised(node, emit)
    _, product = _integer_matmul(node, emit, 4)
    value = q.scaled(product, q.parameter(2, (-1, 1)), q.parameter(3, (-1,)))
    return q.give(emit("Add", value, node.input(6)) if node.input(6) else value)


def _qlinear_conv(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, q = node.dims(3), Quantised(node, emit)
    if dims is None or not _is_known(node):
        return None
    channels = [-1] + [1] * (len(dims) - 2)
    if found := q.windows((0, 2), (3, 5), node.input(8)):
        sums, places = found
        real = q.scaled(emit("Cast", sums, to=TensorProto.FLOAT), q.parameter(1, ()), q.parameter(4, (-1,)))
        return q.quantise(real, 6, places)
    bias = [emit("Cast", node.input(8), to=TensorProto.FLOAT)] if node.input(8) else []
    weights = q.number(3, 5, [*channels, 1])
    value = emit("Conv", q.number(0, 2), weights, *bias, **node.given(_CONV))
    return q.quantise(q.scaled(value, q.parameter(1, ()), q.parameter(4, channels)), 6)


def _is_known(node: NodeView) -> bool:
    """Whether type and shape of the data are known: after other operators have become some that onnx knows.

    In the end the rank will do, where only the data say how many rows there are.
    """
    return node.dims(0) is not None or (node.last and node.extents(0) is not None)


def _qlinear_matmul(node: NodeView, emit: Emitter) -> Emitter | None:
    if not _is_known(node):
        return None
    q = Quantised(node, emit)
    if product := q.product((0, 2), (3, 5)):
        value = emit("Cast", product, to=TensorProto.FLOAT)
    else:
        value = emit("MatMul", q.number(0, 2, (-1, 1)), q.number(3, 5))
    return q.quantise(q.scaled(value, q.parameter(1, (-1, 1)), q.parameter(4, (-1,))), 6)


def _qgemm(node: NodeView, emit: Emitter) -> Emitter | None:
    if not _is_known(node):
        return None
    q, turned = Quantised(node, emit), node.attribute("transB", 0)
    if not node.attribute("transA", 0) and (product := q.product((0, 2), (3, 5), turned=bool(turned))):
        total = emit("Add", product, node.input(6)) if node.input(6) else product
        return _scaled_gemm(node, q, emit, emit("Cast", total, to=TensorProto.FLOAT))
    bias = [emit("Cast", node.input(6), to=TensorProto.FLOAT)] if node.input(6) else []
    weights = q.number(3, 5, (-1, 1) if turned else (-1,))
    value = emit("Gemm", q.number(0, 2), weights, *bias, transA=node.attribute("transA", 0), transB=turned)
    return _scaled_gemm(node, q, emit, value)


def _scaled_gemm(node: NodeView, q: Quantised, emit: Emitter, value: str) -> Emitter:
    """The result of a QGemm from the sums of its products."""
    value = q.scaled(value, q.parameter(1, ()), q.parameter(4, (-1,)), emit.number(node.attribute("alpha", 1.0)))
    return q.quantise(value, 7) if node.input(7) else q.give(value)


def _qlinear_concat(node: NodeView, emit: Emitter) -> Emitter | None:
    q = Quantised(node, emit)
    values = [q.real(first) for first in range(2, len(node.node.input), 3)]
    return q.quantise(emit.join(values, node.attribute("axis", 0)), 0)


def _dynamic_matmul(node: NodeView, emit: Emitter) -> Emitter:
    """A product of bytes: the data are quantised while it runs, all by one scale."""
    data, scale, offset = (f"{emit.prefix}{name}" for name in ("bytes", "scale", "zero"))
    emit.last("DynamicQuantizeLinear", node.input(0), outputs=[data, scale, offset])
    q, matrix, zero = Quantised(node, emit), node.array(1), node.array(3)
    if matrix is None or matrix.ndim != 2 or (node.input(3) and zero is None):
        given = [data, node.input(1), scale, node.input(2), offset, *(node.input(i) for i in (3, 4))]
        emit.last("MatMulIntegerToFloat", *given, outputs=[node.output], domain="com.microsoft")
        return emit
    # Not by way of that operator: onnx knows no type in the body of a Scan that has one.
    total = q.sums(data, emit("Cast", offset, to=TensorProto.INT32), matrix, zero)
    value = q.scaled(emit("Cast", total, to=TensorProto.FLOAT), scale, q.parameter(2, (-1,)))
    return q.give(emit("Add", value, node.input(4)) if node.input(4) else value)


def _of_one(kind: str, attributes: Sequence[str] = ()) -> Callable[[NodeView, Emitter], Emitter | None]:
    """The quantised form of an operator of one input."""

    def lower(node: NodeView, emit: Emitter) -> Emitter | None:
        if node.attribute("channels_last", 0):
            return channels_second(node, emit)
        q = Quantised(node, emit)
        return q.quantise(emit(kind, q.real(0), **node.given(attributes)), 3)

    return lower


def _of_two(kind: str) -> Callable[[NodeView, Emitter], Emitter | None]:
    """The quantised form of an operator of two inputs."""

    def lower(node: NodeView, emit: Emitter) -> Emitter | None:
        q = Quantised(node, emit)
        return q.quantise(emit(kind, q.real(0), q.real(3)), 6)

    return lower


def _qlinear_softmax(node: NodeView, emit: Emitter) -> Emitter | None:
    """Along one axis; before opset 13 along all from it on."""
    dims, axis, q = node.dims(0), node.attribute("axis", -1), Quantised(node, emit)
    if dims is None:
        return None
    node.require(-len(dims) <= axis < len(dims), f"axis {axis} of the shape {dims}")
    axis, real = axis % len(dims), q.real(0)
    if min(emit.opset, node.attribute("opset", 13)) >= 13 or axis == len(dims) - 1:
        return q.quantise(emit("Softmax", real, axis=axis), 3)
    rows = emit("Softmax", emit.reshape(real, [*dims[:axis], math.prod(dims[axis:])]), axis=axis)
    return q.quantise(emit.reshape(rows, dims), 3)


def _qlinear_where(node: NodeView, emit: Emitter) -> Emitter:
    q = Quantised(node, emit)
    return q.quantise(emit("Where", node.input(0), q.real(1), q.real(4)), 7)


QUANTISED = {
    ("", "ConvInteger"): _conv_integer,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    ("com.microsoft", "DynamicQuantizeMatMul"): _dynamic_matmul,
    ("com.microsoft", "MatMulIntegerToFloat"): _matmul_integer_to_float,
    ("com.microsoft", "NhwcConv"): channels_second,
    ("com.microsoft", "NhwcFusedConv"): channels_second,
    ("com.microsoft", "NhwcMaxPool"): channels_second,
    ("com.microsoft", "QGemm"): _qgemm,
    ("com.microsoft", "QLinearConcat"): _qlinear_concat,
    ("com.microsoft", "QLinearAdd"): _of_two("Add"),
    ("com.microsoft", "QLinearMul"): _of_two("Mul"),
    ("com.microsoft", "QLinearAveragePool"): _of_one("AveragePool", _POOL),
    ("com.microsoft", "QLinearConv"): channels_second,
    ("com.microsoft", "QLinearGlobalAveragePool"): _of_one("GlobalAveragePool"),
    ("com.microsoft", "QLinearLeakyRelu"): _of_one("LeakyRelu", ["alpha"]),
    ("com.microsoft", "QLinearSigmoid"): _of_one("Sigmoid"),
    ("com.microsoft", "QLinearSoftmax"): _qlinear_softmax,
    ("com.microsoft", "QLinearWhere"): _qlinear_where,
}
"""By domain and name."""
