"""Quantised operators, integer products, and signals."""

import numpy as np

from ..generate.builder import Builder


def _scale(b: Builder, shape=()):
    return b.constant(np.maximum(b.numbers("float32", shape, 0.01, 0.2), np.float32(0.01)))


def _bytes(b: Builder, dtype, shape):
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    array = b.numbers(dtype, shape, low, high)
    return b.input(array) if b.chance(0.6) else b.constant(array)


def _zero(b: Builder, dtype, shape=()):
    return b.constant(b.numbers(dtype, shape, 0, 20))


def quantize(b: Builder):
    x = b.source(["float32"])
    dtype = b.pick(["uint8", "int8", *(["uint16", "int16"] * (b.opset >= 21))])
    shape, axis = (), None
    if b.opset >= 13 and b.of(x) and b.chance(0.4):
        axis = b.axis(len(b.of(x)))
        shape = (b.of(x)[axis],)
    rest = [_zero(b, dtype, shape)] if b.chance(0.7) or dtype != "uint8" else []
    return b.add("QuantizeLinear", [x, _scale(b, shape), *rest], axis=axis)


def dequantize(b: Builder):
    x = b.source(["uint8", "int8", *(["int32"] if b.chance(0.2) else [])])
    shape, axis = (), None
    if b.opset >= 13 and b.of(x) and b.chance(0.4):
        axis = b.axis(len(b.of(x)))
        shape = (b.of(x)[axis],)
    dtype = b.values[x].dtype
    rest = [_zero(b, dtype, shape)] if b.chance(0.7) and dtype != "int32" else []
    return b.add("DequantizeLinear", [x, _scale(b, shape), *rest], axis=axis)


def dynamic(b: Builder):
    return b.add("DynamicQuantizeLinear", [b.source(["float32"])], 3)


def _matrices(b: Builder):
    m, k, n = b.integer(1, 6), b.integer(1, 9), b.integer(1, 6)
    kinds = b.pick([("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
    batch = list(b.shape(0, 1))
    return kinds, _bytes(b, kinds[0], [*batch, m, k]), _bytes(b, kinds[1], [k, n])


def matmul_integer(b: Builder):
    kinds, x, w = _matrices(b)
    return b.add("MatMulInteger", [x, w, *(_zero(b, k) for k in kinds[: b.integer(0, 2)])])


def qlinear_matmul(b: Builder):
    kinds, x, w = _matrices(b)
    out = [_scale(b), _zero(b, kinds[0])]
    return b.add("QLinearMatMul", [x, _scale(b), _zero(b, kinds[0]), w, _scale(b), _zero(b, kinds[1]), *out])


def _images(b: Builder):
    channels, kernel, size = b.integer(1, 4), b.integer(1, 3), b.integer(3, 7)
    out = b.integer(1, 4)
    x = _bytes(b, "uint8", [b.integer(1, 2), channels, size, size])
    w = _bytes(b, kind := b.pick(["uint8", "int8"]), [out, channels, kernel, kernel])
    how = {"pads": [b.integer(0, kernel - 1)] * 4, "strides": b.pick([None, [2, 2]])}
    return x, w, kind, out, how


def conv_integer(b: Builder):
    x, w, kind, _, how = _images(b)
    return b.add("ConvInteger", [x, w, *([_zero(b, "uint8"), _zero(b, kind)][: b.integer(0, 2)])], **how)


def qlinear_conv(b: Builder):
    x, w, kind, out, how = _images(b)
    inputs = [x, _scale(b), _zero(b, "uint8"), w, _scale(b), _zero(b, kind), _scale(b), _zero(b, "uint8")]
    bias = [b.constant(b.numbers("int32", [out], -500, 500))] * b.integer(0, 1)
    return b.add("QLinearConv", [*inputs, *bias], **how)


def dft(b: Builder):
    complex_ = b.chance(0.3)
    x = b.source(["float32"], shape=[b.integer(1, 2), b.integer(1, 9), 2 if complex_ else 1])
    length = [b.integers(b.integer(2, 8))] if b.chance(0.3) else []
    how = {"onesided": b.pick([None, 1]) if not complex_ else None, "inverse": b.pick([None, 1]) if complex_ else None}
    if b.opset >= 20:
        return b.add("DFT", [x, *(length or [""]), b.integers(1)], **how)
    return b.add("DFT", [x, *length], axis=b.pick([None, 1]), **how)


def stft(b: Builder):
    frame, step = b.integer(2, 6), b.integer(1, 4)
    x = b.source(["float32"], shape=[b.integer(1, 2), b.integer(8, 16), 1])
    window = b.constant(b.numbers("float32", [frame], 0, 1)) if b.chance(0.6) else ""
    last = [b.integers(frame)] if not window or b.chance(0.5) else []
    return b.add("STFT", [x, b.integers(step), window, *last], onesided=b.pick([None, 0, 1]))


def window(op):
    def make(b: Builder):
        return b.add(op, [b.integers(b.integer(1, 9))], periodic=b.pick([None, 0, 1]))

    return make


def mel(b: Builder):
    numbers = [b.integers(8), b.integers(16), b.integers(8000)]
    return b.add("MelWeightMatrix", [*numbers, *(b.constant(np.float32(f)) for f in (0, 4000))])


TABLE = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
    "DFT": dft,
    "STFT": stft,
    "MelWeightMatrix": mel,
} | {op: window(op) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")}
