"""Integer products and quantised operators in floating point: ONNX's own, and those of ONNX Runtime's quantiser.

Sums of products of 8-bit numbers are exact in float32 up to 2**24. Where weights may lead beyond and the result is an
integer, they are cut into two parts, whose sums stay below with any 4,096 terms; longer sums are made in float64.
Quantised results are rounded anyway.

Operators that would quantise what they read while they run (DynamicQuantizeLSTM) do not: here nothing becomes faster by
it, and results only less precise.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..emit import Emitter, NodeView

_EXACT = 2**24
_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_MOST = 255
"""The largest difference of an 8-bit number and its zero point."""
_MOST_TERMS = 4096
"""Of a sum whose weights are cut into parts; longer sums are made in float64."""
_PART = 16
"""Weights are cut into multiples of this, and the rest."""

_LSTM = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget")
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")


class _Quantised:
    """Emits the operators around those of a quantised node. Inputs are named by their positions."""

    def __init__(self, node: NodeView, emit: Emitter) -> None:
        self._node, self._emit = node, emit

    def parameter(self, index: int, shape: Sequence[int]) -> str:
        """A scale or zero point that broadcasts: one for each row or channel has this shape."""
        dims = self._node.dims(index)
        if dims is None or len(dims) != 1:
            return self._node.input(index)
        return self._emit.reshape(self._node.input(index), [] if dims == [1] else shape)

    def number(self, index: int, zero: int, shape: Sequence[int] = (-1,)) -> str:
        """An input less its zero point, in floating point."""
        value = self._emit("Cast", self._node.input(index), to=TensorProto.FLOAT)
        if not self._node.input(zero):
            return value
        return self._emit("Sub", value, self._emit("Cast", self.parameter(zero, shape), to=TensorProto.FLOAT))

    def real(self, first: int) -> str:
        """What a value stands for that is followed by its scale and its zero point."""
        return self._emit("Mul", self.number(first, first + 2), self._single(self.parameter(first + 1, (-1,))))

    def scaled(self, value: str, *scales: str) -> str:
        """A product times the scales of its factors."""
        factor = scales[0] if len(scales) == 1 else self._emit("Mul", *scales)
        return self._emit("Mul", value, self._single(factor))

    def _single(self, scale: str) -> str:
        """A scale in float32, in which all is computed: half precision has no room for products of integers."""
        kinds = [self._node.types.get(name) for name in self._node.node.input]
        narrow = any(k is not None and k.elem_type in _HALVES for k in kinds)
        return self._emit("Cast", scale, to=TensorProto.FLOAT) if narrow else scale

    def quantise(self, value: str, scale: int) -> Emitter:
        """Make a value the node's result, by a scale and the zero point after it."""
        zero = [self.parameter(scale + 1, ())] if self._node.input(scale + 1) else []
        return self.give(self._emit("QuantizeLinear", value, self._single(self.parameter(scale, ())), *zero))

    def give(self, value: str, real: str = "") -> Emitter:
        """Make a value the node's result; `real`: the same in floating point."""
        self._emit.name(value, self._node.output)
        if real:
            self._emit.reals[self._node.output] = real
        return self._emit

    def whole(
        self, product: Callable[[str, str], str], data: str, weights: str, worst: float, terms: int
    ) -> tuple[str, str]:
        """A product of integers with weights, as int32 and as float32.

        Parameters
        ----------
        product : callable
            Of data and weights.
        worst : float
            The largest sum there may be.
        terms : int
            How many are summed up.
        """
        emit = self._emit
        if worst <= _EXACT:
            value = product(data, weights)
            return emit("Cast", value, to=TensorProto.INT32), value
        if terms > _MOST_TERMS:
            value = product(*(emit("Cast", part, to=TensorProto.DOUBLE) for part in (data, weights)))
            return emit("Cast", value, to=TensorProto.INT32), emit("Cast", value, to=TensorProto.FLOAT)
        high = emit("Floor", emit("Mul", weights, emit.number(1 / _PART)))
        low = emit("Sub", weights, emit("Mul", high, emit.number(_PART)))
        high, low = product(data, high), product(data, low)
        value = emit("Add", emit("Mul", high, emit.number(_PART)), low)
        high, low = (emit("Cast", part, to=TensorProto.INT32) for part in (high, low))
        return emit("Add", emit("Mul", high, emit.constant(np.array(_PART, np.int32))), low), value


def _worst(node: NodeView, weights: int, zero: int, summed: Callable[[int], Sequence[int]]) -> float:
    """The largest sum of products with weights; infinite if they are not known. `summed`: axes, by their rank."""
    array, offset = node.array(weights), node.array(zero)
    if array is None or (node.input(zero) and offset is None):
        return float("inf")
    most = np.abs(array.astype(np.int64)) + (0 if offset is None else np.abs(offset.astype(np.int64)).max())
    return float(_MOST * most.sum(axis=tuple(summed(most.ndim))).max())


def _attributes(node: NodeView, names: Sequence[str]) -> dict[str, Any]:
    found = {name: node.attribute(name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _conv_integer(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, given, q = node.dims(1), _attributes(node, _CONV), _Quantised(node, emit)
    if dims is None:
        return None
    data, weights = q.number(0, 2), q.number(1, 3, [-1] + [1] * (len(dims) - 1))
    worst = _worst(node, 1, 3, lambda rank: range(1, rank))
    terms = math.prod(dims[1:])
    return q.give(*q.whole(lambda d, w: emit("Conv", d, w, **given), data, weights, worst, terms))


def _integer_matmul(node: NodeView, emit: Emitter, zero: int) -> tuple[str, str]:
    """The exact product of the first two inputs; `zero`: the position of the first one's zero point."""
    q = _Quantised(node, emit)
    data, weights = q.number(0, zero, (-1, 1)), q.number(1, zero + 1)
    worst = _worst(node, 1, zero + 1, lambda rank: [max(0, rank - 2)])
    terms = (node.dims(1) or [_MOST_TERMS + 1])[-2:][0]
    return q.whole(lambda d, w: emit("MatMul", d, w), data, weights, worst, terms)


def _matmul_integer(node: NodeView, emit: Emitter) -> Emitter | None:
    if node.array(1) is None:
        return None  # TVM's frontend has it, in integers
    return _Quantised(node, emit).give(*_integer_matmul(node, emit, 2))


def _matmul_integer_to_float(node: NodeView, emit: Emitter) -> Emitter | None:
    q = _Quantised(node, emit)
    _, product = _integer_matmul(node, emit, 4)
    value = q.scaled(product, q.parameter(2, (-1, 1)), q.parameter(3, (-1,)))
    return q.give(emit("Add", value, node.input(6)) if node.input(6) else value)


def _qlinear_conv(node: NodeView, emit: Emitter) -> Emitter | None:
    dims, q = node.dims(3), _Quantised(node, emit)
    if dims is None:
        return None
    channels = [-1] + [1] * (len(dims) - 2)
    bias = [emit("Cast", node.input(8), to=TensorProto.FLOAT)] if node.input(8) else []
    weights = q.number(3, 5, [*channels, 1])
    value = emit("Conv", q.number(0, 2), weights, *bias, **_attributes(node, _CONV))
    return q.quantise(q.scaled(value, q.parameter(1, ()), q.parameter(4, channels)), 6)


def _qlinear_matmul(node: NodeView, emit: Emitter) -> Emitter | None:
    q = _Quantised(node, emit)
    value = emit("MatMul", q.number(0, 2, (-1, 1)), q.number(3, 5))
    return q.quantise(q.scaled(value, q.parameter(1, (-1, 1)), q.parameter(4, (-1,))), 6)


def _qgemm(node: NodeView, emit: Emitter) -> Emitter | None:
    q, turned = _Quantised(node, emit), node.attribute("transB", 0)
    bias = [emit("Cast", node.input(6), to=TensorProto.FLOAT)] if node.input(6) else []
    weights = q.number(3, 5, (-1, 1) if turned else (-1,))
    value = emit("Gemm", q.number(0, 2), weights, *bias, transA=node.attribute("transA", 0), transB=turned)
    value = q.scaled(value, q.parameter(1, ()), q.parameter(4, (-1,)), emit.number(node.attribute("alpha", 1.0)))
    return q.quantise(value, 7) if node.input(7) else q.give(value)


def _qlinear_concat(node: NodeView, emit: Emitter) -> Emitter | None:
    q = _Quantised(node, emit)
    values = [q.real(first) for first in range(2, len(node.node.input), 3)]
    return q.quantise(emit.join(values, node.attribute("axis", 0)), 0)


def _dynamic_matmul(node: NodeView, emit: Emitter) -> Emitter | None:
    q = _Quantised(node, emit)
    value = emit("MatMul", node.input(0), emit("Mul", q.number(1, 3), q.parameter(2, (-1,))))
    return q.give(emit("Add", value, node.input(4)) if node.input(4) else value)


def _dynamic_lstm(node: NodeView, emit: Emitter) -> Emitter | None:
    """An LSTM whose weights are [directions, read, gates], with a scale for each direction, or for each gate's row."""
    scales = [node.dims(8), node.dims(10)]
    if any(dims is None or len(dims) not in (1, 2) for dims in scales):
        return None

    def weights(index: int, scale: int) -> str:
        dims = node.dims(scale) or []
        shape = [dims[0], 1, *(dims[1:] or [1])]
        value = emit("Cast", node.input(index), to=TensorProto.FLOAT)
        if node.input(scale + 1):
            zero = emit("Cast", node.input(scale + 1), to=TensorProto.FLOAT)
            value = emit("Sub", value, emit.reshape(zero, shape))
        value = emit("Mul", value, emit.reshape(node.input(scale), shape))
        return emit("Transpose", value, perm=[0, 2, 1])

    inputs = [node.input(0), weights(1, 8), weights(2, 10), *(node.input(i) for i in range(3, 8))]
    emit.last("LSTM", *inputs, outputs=node.node.output, **_attributes(node, _LSTM))
    return emit


def _of_one(kind: str, attributes: Sequence[str] = ()) -> Callable[[NodeView, Emitter], Emitter | None]:
    """The quantised form of an operator of one input."""

    def lower(node: NodeView, emit: Emitter) -> Emitter | None:
        if node.attribute("channels_last", 0):
            return None
        q = _Quantised(node, emit)
        return q.quantise(emit(kind, q.real(0), **_attributes(node, attributes)), 3)

    return lower


def _of_two(kind: str) -> Callable[[NodeView, Emitter], Emitter | None]:
    """The quantised form of an operator of two inputs."""

    def lower(node: NodeView, emit: Emitter) -> Emitter | None:
        q = _Quantised(node, emit)
        return q.quantise(emit(kind, q.real(0), q.real(3)), 6)

    return lower


QUANTISED = {
    ("", "ConvInteger"): _conv_integer,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    ("com.microsoft", "DynamicQuantizeLSTM"): _dynamic_lstm,
    ("com.microsoft", "DynamicQuantizeMatMul"): _dynamic_matmul,
    ("com.microsoft", "MatMulIntegerToFloat"): _matmul_integer_to_float,
    ("com.microsoft", "QGemm"): _qgemm,
    ("com.microsoft", "QLinearConcat"): _qlinear_concat,
    ("com.microsoft", "QLinearAdd"): _of_two("Add"),
    ("com.microsoft", "QLinearMul"): _of_two("Mul"),
    ("com.microsoft", "QLinearAveragePool"): _of_one("AveragePool", _POOL),
    ("com.microsoft", "QLinearGlobalAveragePool"): _of_one("GlobalAveragePool"),
    ("com.microsoft", "QLinearLeakyRelu"): _of_one("LeakyRelu", ["alpha"]),
    ("com.microsoft", "QLinearSigmoid"): _of_one("Sigmoid"),
}
"""By domain and name."""
